package mongoserver_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/sandbox/internal/mongodb/engine"
)

// event is a document of about 550 bytes, as the services read them.
func event(n int) bson.D {
	return bson.D{
		{Key: "aggregateId", Value: fmt.Sprintf("order-%06d", n%50_000)},
		{Key: "version", Value: int64(n / 50_000)},
		{Key: "type", Value: "ItemAdded"},
		{Key: "data", Value: bson.D{{Key: "note", Value: strings.Repeat("x", 420)}}},
	}
}

func insertEvents(ctx context.Context, t testing.TB, coll *mongo.Collection, n int) {
	t.Helper()
	for first := 0; first < n; first += 1000 {
		docs := make([]any, 0, 1000)
		for i := first; i < min(first+1000, n); i++ {
			docs = append(docs, event(i))
		}
		_, err := coll.InsertMany(ctx, docs)
		must(t, err)
	}
}

func BenchmarkInsertMany(b *testing.B) {
	h := start(b, engine.Config{})
	b.ResetTimer()
	insertEvents(b.Context(), b, h.db.Collection("events"), b.N)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "docs/s")
}

func BenchmarkChangeStreamDrain(b *testing.B) {
	h := start(b, engine.Config{})
	coll := h.db.Collection("events")
	stream, err := coll.Watch(b.Context(), mongo.Pipeline{}, options.ChangeStream().SetBatchSize(1000))
	must(b, err)
	defer stream.Close(context.Background())
	insertEvents(b.Context(), b, coll, b.N)
	b.ResetTimer()
	for range b.N {
		if !stream.Next(b.Context()) {
			b.Fatal(stream.Err())
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkGuardedUpserts(b *testing.B) {
	h := start(b, engine.Config{})
	coll := h.db.Collection("orders")
	b.ResetTimer()
	for first := 0; first < b.N; first += 500 {
		var writes []mongo.WriteModel
		for i := first; i < min(first+500, b.N); i++ {
			writes = append(writes, mongo.NewUpdateOneModel().
				SetFilter(bson.D{{Key: "_id", Value: fmt.Sprint("order-", i%5000)}, {Key: "_relay.sequence", Value: bson.D{{Key: "$lt", Value: i + 1}}}}).
				SetUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "_relay.sequence", Value: i + 1}, {Key: "status", Value: "placed"}}}}).
				SetUpsert(true))
		}
		_, err := coll.BulkWrite(b.Context(), writes)
		must(b, err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "upserts/s")
}

func BenchmarkFindByID(b *testing.B) {
	h := start(b, engine.Config{})
	coll := h.db.Collection("events")
	for i := range 200 {
		docs := make([]any, 1000)
		for j := range docs {
			docs[j] = bson.D{{Key: "_id", Value: i*1000 + j}}
		}
		_, err := coll.InsertMany(b.Context(), docs)
		must(b, err)
	}
	b.ResetTimer()
	for i := range b.N {
		must(b, coll.FindOne(b.Context(), bson.D{{Key: "_id", Value: i % 200_000}}).Err())
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "finds/s")
}

func BenchmarkFindManyByID(b *testing.B) {
	h := start(b, engine.Config{})
	coll := h.db.Collection("events")
	insertEvents(b.Context(), b, coll, 20_000)
	var ids bson.A
	cursor, err := coll.Find(b.Context(), bson.D{}, options.Find().SetProjection(bson.D{{Key: "_id", Value: 1}}).SetLimit(1000))
	must(b, err)
	for cursor.Next(b.Context()) {
		ids = append(ids, cursor.Current.Lookup("_id"))
	}
	must(b, cursor.Err())
	var found []bson.Raw
	for b.Loop() {
		cursor, err := coll.Find(b.Context(), bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}})
		must(b, err)
		must(b, cursor.All(b.Context(), &found))
	}
	b.ReportMetric(float64(len(found)*b.N)/b.Elapsed().Seconds(), "documents/s")
}
