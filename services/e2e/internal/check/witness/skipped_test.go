package witness

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Where a projection goes on without what it cannot apply, each such event has a record, and
// nothing else has one.
func TestAtRest_TellsSkippedEventsThatAreExpectedFromOthers(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.projection.Collection, s.projection.OnError = "orders", "skip"
	s.skipped = map[string]skipped{"a1": {"a", 1}, "a2": {"a", 2}, "a3": {"a", 3}, "a4": {"a", 4}}
	record := func(event, projection, action string, version int64, message any) bson.D {
		return bson.D{
			{Key: "_id", Value: bson.D{{Key: "aggregateId", Value: "a"}, {Key: "eventId", Value: event}, {Key: "projection", Value: projection}}},
			{Key: "aggregateVersion", Value: version},
			{Key: "action", Value: action},
			{Key: "message", Value: message},
		}
	}
	whole := bson.D{{Key: "body", Value: "x"}}
	insert(t, s.ReadModel().Collection(skippedEvents),
		record("a1", "orders", "skip", 1, whole), record("a2", "orders", "deadletter", 2, whole), record("a3", "orders", "skip", 3, nil), record("b1", "orders", "skip", 1, whole), record("a1", "shadow", "skip", 1, whole))
	left, err := s.AtRest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		want := []string{
			"a2 of a, version 2: recorded as deadletter for orders", "a3 of a, version 3: recorded as skip for orders", "b1 of a, version 1: recorded as skip for orders",
			"a1 of a, version 1: recorded as skip for shadow", "a4 of a, version 4, has no record",
		}
		if f.Name == SkippedEvents && !slices.Equal(f.Samples, want) {
			t.Errorf("got %q, want %q", f.Samples, want)
		}
	}
}

// What a policy dead-letters has to be there; whatever else is dead-lettered counts.
func TestAtRest_TellsDeadLettersThatAreExpectedFromOthers(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.projection.OnError = "deadletter"
	s.skipped = map[string]skipped{"a1": {"a", 1}}
	dead, err := s.deadLettered(t.Context())
	if err != nil || dead.Count != 1 || dead.Samples[0] != "message a1 of a, version 1, is not among them" {
		t.Errorf("got %d %q, %v, want the one that is missing", dead.Count, dead.Samples, err)
	}
}
