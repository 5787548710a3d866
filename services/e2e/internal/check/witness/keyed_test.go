package witness

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/poll"
)

// place writes the event that places an order of a customer, from the second on in the
// shop.
func (s *stage) place(t *testing.T, order string, version int64, customer string) {
	t.Helper()
	e := event(order, version)
	e.Type, e.Data = orders.Placed, orders.Data{"customer": customer, "channel": "web"}
	if version > 1 {
		e.Data = orders.Data{"customer": customer, "channel": "shop"}
	}
	if err := s.writer.Insert(t.Context(), []orders.Event{e}); err != nil {
		t.Fatal(err)
	}
	s.Ledger.Wrote([]orders.Event{e})
}

// customer is a customer's document as keyed.yaml has it.
func customer(id string, placed, sum, lowest, highest int64) bson.D {
	return bson.D{
		{Key: "_id", Value: id},
		{Key: "orders", Value: placed},
		{Key: "sum", Value: sum},
		{Key: "lowest", Value: lowest},
		{Key: "highest", Value: highest},
		{Key: "channels", Value: bson.A{"web"}},
	}
}

// inShop is a document of what a customer has placed in the shop.
func inShop(id string, placed, sum, lowest, highest int64) bson.D {
	d := customer(id, placed, sum, lowest, highest)
	d[5].Value = bson.A{"shop"}
	return d
}

// noted is how far an order has come in a projection.
func (s *stage) noted(t *testing.T, projection, order string, version int64, sequence string) bson.D {
	t.Helper()
	return bson.D{
		{Key: "_id", Value: bson.D{{Key: "projection", Value: projection}, {Key: "aggregateId", Value: order}}},
		{Key: "sequence", Value: sequence},
		{Key: "eventId", Value: s.messageID(t, order, version)},
	}
}

// Documents that many orders change are judged by what the source says of all of them,
// and what is noted of each order by its last event that they follow.
func TestJudge_FindsWhatDocumentsOfAnotherKeyHaveWrong(t *testing.T) {
	t.Parallel()
	s := newStageOf(t, Latest.WithKeyed())
	s.place(t, "a", 1, "right")
	s.write(t, "a", 2) // is of no customer
	s.place(t, "a", 3, "right")
	s.write(t, "a", 4)
	s.place(t, "b", 1, "twice")
	s.place(t, "c", 1, "lost")
	s.place(t, "d", 1, "right")
	marked := customer("right", 3, 5, 1, 3)
	marked[5].Value = bson.A{"shop", "web"} // in any order
	marked = append(marked, bson.E{Key: "_relay", Value: bson.D{{Key: "sequence", Value: "1"}, {Key: "halted", Value: bson.D{}}}})
	insert(t, s.ReadModel().Collection("customers"), marked, customer("twice", 2, 2, 1, 1), customer("nobody", 1, 1, 1, 1),
		customer("right/web", 2, 2, 1, 1), inShop("right/shop", 1, 3, 3, 3), customer("twice/web", 1, 1, 1, 1))
	insert(t, s.ReadModel().Collection(positionsKept),
		s.noted(t, "customers", "a", 3, "0000000000000000003"),
		s.noted(t, "customers", "b", 1, "0000000000000000002"),
		s.noted(t, "customers", "c", 2, "0000000000000000001"),
		s.noted(t, "others", "e", 1, "0000000000000000001"))
	s.archive(t, "a", 1, 2)
	v, err := s.Judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want(t, v.Violation(WrongKeyed), "lost is missing", "lost/web is missing", "twice: orders is 2 (want 1), sum is 2 (want 1)", "nobody should not be there", "right is marked as halted")
	want(t, v.Violation(MisplacedKeyed), "b: sequence is", "c: eventId is", "d is missing")
}

// What came late for the documents of its own order may come in its place for those of
// another key, which do not follow what came before it; unless an operator has left it out.
func TestJudge_WhatCameLateIsInDocumentsOfAnotherKeyThatFollowNothingLater(t *testing.T) {
	t.Parallel()
	s := newStageOf(t, Latest.WithKeyed())
	s.place(t, "a", 1, "right")
	s.place(t, "a", 2, "right") // comes after 3, which is of no customer
	s.write(t, "a", 3)
	s.place(t, "b", 1, "late") // comes after 2, and nobody has it
	s.place(t, "b", 2, "late")
	s.place(t, "c", 1, "out")
	s.place(t, "c", 2, "out") // is left out
	for _, e := range []validate.Event{{Aggregate: "a", Version: 1}, {Aggregate: "a", Version: 3}, {Aggregate: "a", Version: 2}, {Aggregate: "b", Version: 2}, {Aggregate: "b", Version: 1}, {Aggregate: "c", Version: 1}, {Aggregate: "c", Version: 2}} {
		s.send(t, e.Aggregate, e.Version, 1)
	}
	err := poll.Until(t.Context(), "the messages", func(context.Context) (bool, string) { return s.Observer.Count() == 7, "not all" })
	if err != nil {
		t.Fatal(err)
	}
	insert(t, s.ReadModel().Collection(decisionsLedger), bson.D{{Key: "command", Value: "parked discard"}, {Key: "about", Value: bson.A{bson.D{{Key: "aggregate", Value: "c"}, {Key: "version", Value: int64(2)}}}}})
	insert(t, s.State().Collection(gapsLedger), bson.D{{Key: "stream", Value: "s"}, {Key: "fromTime", Value: time.Now().Add(-time.Hour)}, {Key: "toTime", Value: time.Now()}, {Key: "decision", Value: "now"}})
	if _, _, err := s.Forgive(t.Context(), Doings{Moves: atAnyTime(), LeftOut: map[string]LeftOut{ownGroup: {{Aggregate: "c", Version: 2}: {}}}}); err != nil {
		t.Fatal(err)
	}
	both := customer("right", 2, 3, 1, 2)
	both[5].Value = bson.A{"shop", "web"}
	insert(t, s.ReadModel().Collection("customers"), both, customer("right/web", 1, 1, 1, 1), inShop("right/shop", 1, 2, 2, 2),
		inShop("late", 1, 2, 2, 2), inShop("late/shop", 1, 2, 2, 2), customer("out", 1, 1, 1, 1), customer("out/web", 1, 1, 1, 1))
	insert(t, s.ReadModel().Collection(positionsKept), s.noted(t, "customers", "a", 2, "0000000000000000002"),
		s.noted(t, "customers", "b", 2, "0000000000000000002"), s.noted(t, "customers", "c", 1, "0000000000000000001"))
	v, err := s.Judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{WrongKeyed, MisplacedKeyed} {
		if f := v.Violation(name); f.Count != 0 {
			t.Errorf("%s: got %q, want none", name, f.Samples)
		}
	}
}

// A projection of another key that was built anew is judged by what is noted of its version
// that readers see, which notes every event.
func TestJudge_FindsWhatIsNotedWrongOfDocumentsThatWereBuiltAnew(t *testing.T) {
	t.Parallel()
	s := newStageOf(t, Latest.WithKeyed().Repaired())
	s.projection.Views = []string{Buyers}
	for _, order := range []string{"a", "b", "c", "d"} {
		s.place(t, order, 1, "right")
	}
	s.write(t, "a", 2) // is of no customer
	s.write(t, "d", 2)
	documents := []any{customer("right", 4, 4, 1, 1), customer("right/web", 4, 4, 1, 1)}
	insert(t, s.ReadModel().Collection("buyers_v2"), documents...)
	if err := s.ReadModel().CreateView(t.Context(), Buyers, "buyers_v2", bson.A{}); err != nil {
		t.Fatal(err)
	}
	insert(t, s.ReadModel().Collection(positionsKept),
		s.noted(t, "buyers_v1", "a", 1, "0000000000000000001"), s.noted(t, "buyers_v1", "c", 1, "0000000000000000001"),
		s.noted(t, "buyers_v2", "a", 2, "0000000000000000002"), s.noted(t, "buyers_v2", "b", 1, "0000000000000000002"), s.noted(t, "buyers_v2", "d", 1, "0000000000000000001"))
	v, err := s.Judge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want(t, v.Violation(WrongViews), "b: sequence is", "c is missing", "d: eventId is")
}

// want checks that the findings are those that begin so.
func want(t *testing.T, got validate.Findings, begin ...string) {
	t.Helper()
	all := "\n" + strings.Join(got.Samples, "\n")
	for _, b := range begin {
		if !strings.Contains(all, "\n"+b) {
			t.Errorf("got %q, want one that begins with %q", got.Samples, b)
		}
	}
	if got.Count != len(begin) {
		t.Errorf("got %d %q, want %d", got.Count, got.Samples, len(begin))
	}
}
