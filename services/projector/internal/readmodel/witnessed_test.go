package readmodel

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// A look goes on for some round trips, while writers note what they had to insert.
func TestWitnessed_ALookIsNotChangedByWhatIsWrittenMeanwhile(t *testing.T) {
	t.Parallel()
	kind, value, err := bson.MarshalValue("a")
	if err != nil {
		t.Fatal(err)
	}
	id := bson.RawValue{Type: kind, Value: value}
	s := &witnessed{of: map[string]knownWitnesses{}}
	s.keep("own", witnesses{IDs: []bson.RawValue{id}})
	_, before := s.look("own")
	s.inserted("own", time.Now(), &mongo.BulkWriteResult{UpsertedIDs: map[int64]any{0: "a"}})
	_, after := s.look("own")
	if before[idKey(id)] || !after[idKey(id)] {
		t.Errorf("inserted again is %t by a look before, %t by one behind, want false and true", before[idKey(id)], after[idKey(id)])
	}
}
