package witness

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/harness/orders"
)

// tallied is a document of a shadow that has applied events in an order.
func (s *stage) tallied(t *testing.T, aggregate string, versions ...int64) bson.D {
	t.Helper()
	sum, tail, last := int64(0), bson.A{}, event(aggregate, versions[len(versions)-1])
	for i, v := range versions {
		sum += v
		if i >= len(versions)-tailKept {
			tail = append(tail, v)
		}
	}
	id := s.messageID(t, aggregate, last.Version)
	return bson.D{
		{Key: "_id", Value: aggregate},
		{Key: "events", Value: int64(len(versions))},
		{Key: "sum", Value: sum},
		{Key: "tail", Value: tail},
		{Key: "id", Value: id},
		{Key: "type", Value: last.Type},
		{Key: "time", Value: last.Time},
		{Key: "data", Value: bson.D{{Key: "n", Value: last.Version}}},
		{Key: "_relay", Value: bson.D{
			{Key: "eventId", Value: id},
			{Key: "eventType", Value: last.Type},
			{Key: "eventTime", Value: last.Time},
			{Key: "sequence", Value: fmt.Sprintf("%019d", last.Version)},
			{Key: "aggregateVersion", Value: last.Version},
		}},
	}
}

// Another group, which halts nothing, has what the first one halts, and what is not in the
// source any more.
func TestJudge_AnotherGroupHasWhatTheFirstHalts(t *testing.T) {
	t.Parallel()
	s := newStageOf(t, Shadowed)
	s.write(t, "a", 1)
	s.write(t, "a", 2)
	s.write(t, "halted", 1)
	s.ExpectHalted([]orders.Event{event("halted", 1)})
	s.archive(t, "a", 1)
	s.JudgeBeside("beside")
	insert(t, s.ReadModel().Collection("beside"), s.tallied(t, "a", 1, 2), s.tallied(t, "halted", 1))
	v, err := s.Judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{WrongBeside, MisappliedBeside} {
		if got := v.Violation(name); got.Count != 0 {
			t.Errorf("%s: got %q, want none", name, got.Samples)
		}
	}
}
