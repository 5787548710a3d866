package witness

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/harness/orders"
)

// Where aggregates have to be halted, exactly these must be, and nothing of them is missed
// in the read model.
func TestAtRest_TellsHaltsThatAreExpectedFromOthers(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	expected := []orders.Event{event("halted", 1), event("applied", 1)}
	for _, e := range append(expected, event("right", 1)) {
		s.write(t, e.Aggregate, 1)
		s.send(t, e.Aggregate, 1, 1)
	}
	s.ExpectHalted(expected)
	s.apply(t, "right", 1)
	insert(t, s.ReadModel().Collection("halted_aggregates"), bson.D{{Key: "_id", Value: "halted"}}, bson.D{{Key: "_id", Value: "right"}})
	insert(t, s.ReadModel().Collection(parkedMessages), bson.D{{Key: "_id", Value: bson.D{{Key: "group", Value: ""}, {Key: "aggregateId", Value: "halted"}, {Key: "eventId", Value: "x"}}}})
	left, err := s.AtRest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, f := range left {
		found[f.Name] = f.Samples
	}
	if got := found[HaltedAggregates]; len(got) != 2 || got[0] != "right is in halted_aggregates" || got[1] != "applied is not in halted_aggregates" {
		t.Errorf("halts: got %q, want one too many and one missing", got)
	}
	if got := found[ParkedMessages]; len(got) != 1 || got[0] != "applied is not in parked_messages" {
		t.Errorf("parked: got %q, want one missing", got)
	}
	v, err := s.Judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if lost := v.Violation(LostBeforeReadModel); lost.Count != 0 || v.Forgiven != 2 {
		t.Errorf("lost: got %v with %d forgiven, want nothing lost but those two", lost, v.Forgiven)
	}
}
