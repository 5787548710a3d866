package readmodel_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

// What the server says of a refused write quotes data; the reason that is stored
// and logged does not.
func TestStore_ARefusalSaysWhyWithoutTheData(t *testing.T) {
	t.Parallel()
	set := func(field string, value any) bson.D {
		return bson.D{{Key: "$set", Value: bson.D{{Key: field, Value: value}}}}
	}
	for name, tt := range map[string]struct {
		update bson.D
		want   string
	}{
		"a unique index":          {set("email", "canary"), "unique index on email"},
		"a value of another type": {bson.D{{Key: "$inc", Value: bson.D{{Key: "name", Value: 1}}}}, "(TypeMismatch)"},
		"a path through a value":  {set("name.first", "canary"), "(PathNotViable)"},
		"a validator":             {set("age", "canary"), "(DocumentValidationFailure)"},
		"a document of too much":  {set("big", "canary"+strings.Repeat("x", 17<<20)), ""},
		"a number and a text":     {bson.D{{Key: "$max", Value: bson.D{{Key: "name.canary", Value: 1}}}}, "(PathNotViable)"},
		"a list that is a text":   {bson.D{{Key: "$push", Value: bson.D{{Key: "name", Value: bson.D{{Key: "$each", Value: bson.A{"canary"}}}}}}}, "code 2 (BadValue)"},
	} {
		for _, keyed := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newSubject(t, nil)
				if err := s.db.CreateCollection(t.Context(), "c", options.CreateCollection().SetValidator(bson.D{{Key: "age", Value: bson.D{{Key: "$not", Value: bson.D{{Key: "$type", Value: "string"}}}}}})); err != nil {
					t.Fatal(err)
				}
				index := mongo.IndexModel{Keys: bson.D{{Key: "email", Value: 1}}, Options: options.Index().SetUnique(true).SetSparse(true)}
				if _, err := s.db.Collection("c").Indexes().CreateOne(t.Context(), index); err != nil {
					t.Fatal(err)
				}
				write := func(aggregate string, n int64, update bson.D) error {
					_, err := s.Write(t.Context(), []projection.Write{{Projection: "p", Collection: "c", ID: aggregate, Keyed: keyed, Event: readmodeltest.Event(aggregate, n), Update: update}})
					return err
				}
				for aggregate, update := range map[string]bson.D{"a": set("email", "canary"), "b": set("name", "canary")} {
					if err := write(aggregate, 1, update); err != nil {
						t.Fatal(err)
					}
				}
				err := write("b", 2, tt.update)
				if err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %.300v, want %q and nothing of the data", err, tt.want)
				}
			})
		}
	}
}
