package witness

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/poll"
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

// judgeBeside has the witness look at another group.
func (s *stage) judgeBeside(t *testing.T) {
	t.Helper()
	if err := s.JudgeBeside(t.Context(), "beside"); err != nil {
		t.Fatal(err)
	}
}

// tally writes such a document as the other group.
func (s *stage) tally(t *testing.T, aggregate string, versions ...int64) {
	t.Helper()
	to, which := s.ReadModel().Collection("beside"), bson.D{{Key: "_id", Value: aggregate}}
	if _, err := to.ReplaceOne(t.Context(), which, s.tallied(t, aggregate, versions...), options.Replace().SetUpsert(true)); err != nil {
		t.Fatal(err)
	}
}

// awaitTallied waits until the witness has seen so many writes of the other group.
func (s *stage) awaitTallied(t *testing.T, writes int) {
	t.Helper()
	err := poll.Until(t.Context(), "the writes of the other group", func(context.Context) (bool, string) {
		n := s.seenBeside()["beside"].Writes()
		return n >= writes, fmt.Sprint(n)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The order in which another group applies events is seen write by write, as that of the
// first group is: its documents name the latest events alone.
func TestJudge_FindsWhatAnotherGroupHasAppliedInAnotherOrder(t *testing.T) {
	t.Parallel()
	s := newStageOf(t, Shadowed)
	s.judgeBeside(t)
	s.judgeBeside(t)
	right, swapped := []int64{}, []int64{}
	for v := int64(1); v <= 2+tailKept; v++ {
		s.write(t, "right", v)
		s.write(t, "swapped", v)
		right, swapped = append(right, v), append(swapped, v)
		if v == 2 {
			swapped = []int64{2, 1}
			s.tally(t, "swapped", 2)
		}
		if v > 1 {
			s.tally(t, "swapped", swapped...)
		}
		s.tally(t, "right", right...)
	}
	s.write(t, "unseen", 1)
	s.write(t, "unseen", 2)
	unseen := s.tallied(t, "unseen", 1, 2)
	unseen[3].Value = bson.A{int64(2)}
	insert(t, s.ReadModel().Collection("beside"), unseen)
	s.awaitTallied(t, len(right)+len(swapped)+1)
	v, err := s.Judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"swapped: its 130 events were applied in another order", "unseen: of its 2 events 1 were not seen being applied"}
	if got := v.Violation(MisappliedBeside); !slices.Equal(got.Samples, want) {
		t.Errorf("got %q, want %q", got.Samples, want)
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
	s.judgeBeside(t)
	s.tally(t, "a", 1)
	s.tally(t, "a", 1, 2)
	s.tally(t, "halted", 1)
	s.awaitTallied(t, 3)
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
