package javascript

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/interrupt"
)

func BenchmarkEngine(b *testing.B) {
	pool := NewPool()
	for b.Loop() {
		_, work := interrupt.New(b.Context())
		if _, err := pool.Session(work).Call("1"); err != nil {
			b.Fatal(err)
		}
		work.End()
	}
}

func BenchmarkWhere(b *testing.B) {
	s := session(b)
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: bson.NewObjectID()}, {Key: "a", Value: 1}, {Key: "b", Value: "text"}, {Key: "c", Value: bson.A{1, 2, 3}}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Where("this.a > 1", doc); err != nil {
			b.Fatal(err)
		}
	}
}
