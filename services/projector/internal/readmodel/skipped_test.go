package readmodel_test

import (
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

// skipping are the writes of a version of a projection that skips an event.
func skipping(name string, e *contract.Event) []projection.Write {
	return []projection.Write{
		{Projection: name, Collection: name, ID: e.AggregateID, Event: e, Kept: true, Skipped: &projection.Skipped{
			Class: projection.Evaluate, Action: projection.Skip, Reason: "never", Message: &contract.Message{ID: e.ID, Body: []byte("{}")},
		}},
		{Projection: name, Event: e, Keyed: true, Passed: true},
	}
}

// skips has events of aggregates skipped by a projection, and returns their outcomes.
func (s *subject) skips(t *testing.T, name string, aggregates ...string) (outcomes []delivery.Outcome) {
	t.Helper()
	for _, aggregate := range aggregates {
		some, err := s.Write(t.Context(), skipping(name, readmodeltest.Event(aggregate, 1)))
		if err != nil {
			t.Fatal(err)
		}
		outcomes = append(outcomes, some[0])
	}
	return outcomes
}

// A record is made once, with the position, and a repeat leaves it as it is.
func TestSkipped_ARecordIsMadeOnceWithThePosition(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	if first, again := s.skips(t, "p_v1", "a"), s.skips(t, "p_v1", "a"); first[0] != delivery.Applied || again[0] != delivery.Recorded {
		t.Errorf("got outcomes %v and %v, want it applied, and then recorded before", first, again)
	}
	at, err := s.Position(t.Context(), &projection.Write{Projection: "p_v1", Keyed: true, Event: readmodeltest.Event("a", 2)})
	if err != nil || at.EventID != "a-1" {
		t.Errorf("the position is %+v, %v, want it moved", at, err)
	}
	var records []readmodel.SkippedEvent
	err = s.Skipped.Each(t.Context(), "a", true, func(e readmodel.SkippedEvent) error {
		records = append(records, e)
		return nil
	})
	if err != nil || len(records) != 1 || records[0].Message == nil || string(records[0].Message.Body) != "{}" || !records[0].Counted {
		t.Errorf("got records %+v and %v, want one with its message", records, err)
	}
}

// records are those of an aggregate.
func (s *subject) records(t *testing.T, aggregate string) (records []readmodel.SkippedEvent) {
	t.Helper()
	err := s.Skipped.Each(t.Context(), aggregate, true, func(e readmodel.SkippedEvent) error {
		records = append(records, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// deadLettered are the writes of a projection that has an event dead-lettered.
func deadLettered(name, collection string, id any, e *contract.Event) []projection.Write {
	return []projection.Write{{Projection: name, Collection: collection, ID: id, Event: e, Passed: true, Skipped: &projection.Skipped{
		Class: projection.Crash, Action: projection.DeadLetter, Reason: "never", Message: &contract.Message{ID: e.ID, Body: []byte("{}")},
	}}}
}

// A process may have died of an event that it had applied. Skipped for that it is a repeat,
// and no record says that the document lacks it; the next one is recorded.
func TestSkipped_WhatIsAppliedIsNotRecorded(t *testing.T) {
	t.Parallel()
	for name, skip := range map[string]func(e *contract.Event) []projection.Write{
		"skip":                  func(e *contract.Event) []projection.Write { return skipping("p_v1", e) },
		"deadletter":            func(e *contract.Event) []projection.Write { return deadLettered("p_v1", "p_v1", "a", e) },
		"deadletter with a key": func(e *contract.Event) []projection.Write { return deadLettered("k", "", nil, e) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSubject(t, nil)
			for n := int64(1); n <= 2; n++ {
				e := readmodeltest.Event("a", n)
				if _, err := s.Write(t.Context(), []projection.Write{
					{Projection: "p_v1", Collection: "p_v1", ID: "a", Event: e, Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}},
					{Projection: "k", Collection: "k", ID: "all", Keyed: true, Event: e, Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}},
				}); err != nil {
					t.Fatal(err)
				}
			}
			for n, want := range map[int64]delivery.Outcome{1: delivery.Repeated, 2: delivery.Repeated, 3: delivery.Applied} {
				outcomes, err := s.Write(t.Context(), skip(readmodeltest.Event("a", n)))
				if err != nil || outcomes[0] != want {
					t.Errorf("event %d: got %v and %v, want %v", n, outcomes, err, want)
				}
			}
			if records := s.records(t, "a"); len(records) != 1 || records[0].EventID != "a-3" {
				t.Errorf("got records %+v, want one of the third event", records)
			}
			later := readmodeltest.Event("a", 4)
			if _, err := s.Write(t.Context(), []projection.Write{
				{Projection: "p_v1", Collection: "p_v1", ID: "a", Event: later, Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}},
				{Projection: "k", Collection: "k", ID: "all", Keyed: true, Event: later, Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}},
			}); err != nil {
				t.Fatal(err)
			}
			if outcomes, err := s.Write(t.Context(), skip(readmodeltest.Event("a", 3))); err != nil || outcomes[0] != delivery.Recorded {
				t.Errorf("the third again: got %v and %v, want it recorded before, whatever is applied over it", outcomes, err)
			}
		})
	}
}

// What a projection has skipped before the document's first event is a repeat when it comes
// again, even where it can be applied by then. Without a record it halts the aggregate.
func TestSkipped_BeforeTheFirstEventIsARepeat(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	own := func(n int64) []projection.Write {
		return []projection.Write{{Projection: "p_v1", Collection: "p_v1", ID: "a", Event: readmodeltest.Event("a", n), Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}}}
	}
	if _, err := s.Write(t.Context(), skipping("p_v1", readmodeltest.Event("a", 2))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(t.Context(), own(3)); err != nil {
		t.Fatal(err)
	}
	if outcomes, err := s.Write(t.Context(), own(2)); err != nil || outcomes[0] != delivery.Repeated {
		t.Errorf("the skipped event: got %v and %v, want a repeat", outcomes, err)
	}
	if outcomes, err := s.Write(t.Context(), own(1)); err == nil || outcomes[0] != delivery.Unknown {
		t.Errorf("one that was not skipped: got %v and %v, want it refused", outcomes, err)
	}
}

// An event that was dead-lettered, and that a skip goes over when it comes again, is a
// repeat when it is put back: the record stays.
func TestSkipped_ASkipOfADeadLetterIsLeftOut(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	e := readmodeltest.Event("a", 1)
	for _, writes := range [][]projection.Write{deadLettered("p_v1", "p_v1", "a", e), skipping("p_v1", e), deadLettered("p_v1", "p_v1", "a", e)} {
		if _, err := s.Write(t.Context(), writes); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Store.Parked.Reapplied(t.Context(), e, []string{"p_v1"}); err != nil {
		t.Fatal(err)
	}
	if records := s.records(t, "a"); len(records) != 1 || records[0].Action != projection.Skip {
		t.Errorf("got records %+v, want one that says that it is left out", records)
	}
}

// A record goes in the transaction that applies its event after all: there was no document
// whose position the skip could have moved, or it was dead-lettered. Where a skip has moved
// the position the event is a repeat, and the record stays.
func TestSkipped_ARecordGoesAsItsEventIsApplied(t *testing.T) {
	t.Parallel()
	mending := func(w projection.Write) []projection.Write {
		w.Mends = true
		return []projection.Write{w}
	}
	own := func(e *contract.Event) projection.Write {
		return projection.Write{Projection: "p_v1", Collection: "p_v1", ID: "a", Event: e, Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}}
	}
	first, second := readmodeltest.Event("a", 1), readmodeltest.Event("a", 2)
	for name, tt := range map[string]struct {
		before  []projection.Write
		skip    []projection.Write
		again   []projection.Write
		outcome delivery.Outcome
		left    int
	}{
		"without a document":              {nil, skipping("p_v1", second), mending(own(second)), delivery.Applied, 0},
		"that is dead-lettered":           {[]projection.Write{own(first)}, deadLettered("p_v1", "p_v1", "a", second), mending(own(second)), delivery.Applied, 0},
		"that passes the ledger alone":    {[]projection.Write{{Projection: "k", Keyed: true, Passed: true, Event: first}}, deadLettered("k", "", nil, second), mending(projection.Write{Projection: "k", Keyed: true, Passed: true, Event: second}), delivery.Applied, 0},
		"with a position past it":         {[]projection.Write{own(first)}, skipping("p_v1", second), mending(own(second)), delivery.Repeated, 1},
		"of which nobody says that it is": {nil, skipping("p_v1", second), []projection.Write{own(second)}, delivery.Applied, 1},
		"of another projection":           {nil, skipping("q_v1", second), mending(own(second)), delivery.Applied, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSubject(t, nil)
			var outcomes []delivery.Outcome
			for _, writes := range [][]projection.Write{tt.before, tt.skip, tt.again} {
				var err error
				if outcomes, err = s.Write(t.Context(), writes); err != nil {
					t.Fatal(err)
				}
			}
			if records := s.records(t, "a"); outcomes[0] != tt.outcome || len(records) != tt.left {
				t.Errorf("got outcome %v and records %+v, want %v and %d", outcomes[0], records, tt.outcome, tt.left)
			}
		})
	}
}

// A document may be past a skipped event while the ledger's position of it is not: only
// rules that read their document move that.
func TestSkipped_ARecordStaysWhereOnlyTheLedgerMoves(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	own := func(n int64) projection.Write {
		return projection.Write{Projection: "p_v1", Collection: "p_v1", ID: "a", Event: readmodeltest.Event("a", n), Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}}
	}
	skipped := own(2)
	skipped.Mends = true
	ledger := projection.Write{Projection: "p_v1", Keyed: true, Passed: true, Event: skipped.Event, Mends: true}
	var outcomes []delivery.Outcome
	for _, writes := range [][]projection.Write{{own(1)}, deadLettered("p_v1", "p_v1", "a", skipped.Event), {own(3)}, {skipped, ledger}} {
		var err error
		if outcomes, err = s.Write(t.Context(), writes); err != nil {
			t.Fatal(err)
		}
	}
	if records := s.records(t, "a"); outcomes[0] != delivery.Repeated || len(records) != 1 {
		t.Errorf("got outcomes %v and records %+v, want a repeat, and the record of what the document lacks", outcomes, records)
	}
}

// Where a document is lost that had an event after all, and lacks it again, the record
// stands again: whole, and counted for the brake.
func TestSkipped_AnEndedRecordStandsAgain(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	e := readmodeltest.Event("a", 1)
	applying := projection.Write{Projection: "p", Collection: "p", ID: "a", Event: e, Mends: true, Update: bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 1}}}}}
	skip := skipping("p", e)[:1]
	for _, writes := range [][]projection.Write{skip, {applying}} {
		if _, err := s.Write(t.Context(), writes); err != nil {
			t.Fatal(err)
		}
	}
	ended := s.records(t, "a")
	times, err := s.LatestHalts(t.Context(), 5)
	if n, countErr := s.Skipped.Count(t.Context()); err != nil || countErr != nil || n != 0 || len(ended) != 0 || len(times) != 0 {
		t.Errorf("ended: got %d, %v and %v, want none to be seen", n, ended, times)
	}
	if _, err := s.db.Collection("p").DeleteMany(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	outcomes, err := s.Write(t.Context(), skip)
	records := s.records(t, "a")
	if err != nil || outcomes[0] != delivery.Applied || len(records) != 1 || !records[0].Counted || records[0].Message == nil {
		t.Errorf("again: got %v, %v and %+v, want the whole record", outcomes, err, records)
	}
	if outcomes, err := s.Write(t.Context(), skip); err != nil || outcomes[0] != delivery.Recorded {
		t.Errorf("once more: got %v and %v, want it recorded before", outcomes, err)
	}
}

// The last record of an aggregate is found among those of others.
func TestSkipped_TheLastOneOfAnAggregate(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	for _, e := range []*contract.Event{readmodeltest.Event("a", 3), readmodeltest.Event("a", 20), readmodeltest.Event("a", 1), readmodeltest.Event("b", 30)} {
		if _, err := s.Write(t.Context(), deadLettered("k", "", nil, e)); err != nil {
			t.Fatal(err)
		}
	}
	for aggregate, want := range map[string]contract.Sequence{"a": readmodeltest.Event("a", 20).Sequence, "b": readmodeltest.Event("b", 30).Sequence, "c": ""} {
		if got, err := s.Skipped.LastSkipped(t.Context(), aggregate); err != nil || got != want {
			t.Errorf("%s: got %q and %v, want %q", aggregate, got, err, want)
		}
	}
}

// What counts for the brake are halts and records together, the latest first, until they
// are accepted.
func TestSkipped_CountBesideHalts(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	counts := func(when string, limit, want int) []time.Time {
		t.Helper()
		times, err := s.LatestHalts(t.Context(), limit)
		if err != nil || len(times) != want {
			t.Fatalf("%s: got %v and %v, want %d", when, times, err, want)
		}
		return times
	}
	s.skips(t, "p_v1", "a")
	if _, err := s.Halt(t.Context(), delivery.Halt{Event: *readmodeltest.Event("b", 1)}); err != nil {
		t.Fatal(err)
	}
	s.skips(t, "p_v1", "c")
	if times := counts("all", 5, 3); times[0].Before(times[1]) || times[1].Before(times[2]) {
		t.Errorf("got %v, want the latest first", times)
	}
	counts("no more than asked", 2, 2)
	if n, err := s.Skipped.Accept(t.Context()); err != nil || n != 2 {
		t.Errorf("accepted %d, %v, want two", n, err)
	}
	counts("accepted", 5, 1)
	s.skips(t, "p_v1", "a", "d")
	counts("a repeat, and one more", 5, 2)
	s.skips(t, "q_v1", "d")
	counts("one that another projection has skipped, too", 5, 2)
}

// A version that is filled skips again what the live one has skipped. Each such event counts
// for the brake since the live one has skipped it, and not where that was accepted; what the
// filled one alone skips counts as any other.
func TestSkipped_WhatARebuildSkipsAgainCountsAsBefore(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	latest := func() []time.Time {
		t.Helper()
		times, err := s.LatestHalts(t.Context(), 5)
		if err != nil {
			t.Fatal(err)
		}
		return times
	}
	resent := func(aggregate string) {
		t.Helper()
		e := readmodeltest.Event(aggregate, 1)
		e.Resend = contract.Resend{ID: "r1", Group: "/p_v2"}
		if outcomes, err := s.Write(t.Context(), skipping("p_v2", e)); err != nil || outcomes[0] != delivery.Applied {
			t.Fatalf("%s: got %v and %v, want it recorded", aggregate, outcomes, err)
		}
	}
	s.skips(t, "p_v1", "accepted")
	if _, err := s.Skipped.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.skips(t, "p_v1", "counting")
	before := latest()
	resent("accepted")
	resent("counting")
	if now := latest(); !slices.Equal(now, before) {
		t.Errorf("got %v, want what counted before, %v", now, before)
	}
	if err := s.Skipped.ForgetOf(t.Context(), "p_v1"); err != nil {
		t.Fatal(err)
	}
	if now := latest(); !slices.Equal(now, before) {
		t.Errorf("without the old version: got %v, want what counted before, %v", now, before)
	}
	resent("new")
	if now := latest(); len(now) != 2 {
		t.Errorf("got %v, want what the filled version alone skips to count as well", now)
	}
}

// The documents of a version that is dropped lack nothing any more.
func TestSkipped_RecordsGoWithTheirVersion(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	s.skips(t, "p_v1", "a", "b")
	s.skips(t, "p_v2", "a")
	if err := s.Drop(t.Context(), &projection.Version{Projection: "p", View: "p", Number: 1}); err != nil {
		t.Fatal(err)
	}
	var left []string
	err := s.Skipped.Each(t.Context(), "", false, func(e readmodel.SkippedEvent) error {
		left = append(left, e.Projection+" "+e.AggregateID)
		return nil
	})
	if err != nil || len(left) != 1 || left[0] != "p_v2 a" {
		t.Errorf("got %q and %v, want the one of the other version", left, err)
	}
	if n, err := s.db.Collection(projection.SkippedEvents).CountDocuments(t.Context(), bson.D{}); err != nil || n != 1 {
		t.Errorf("%d are left, %v", n, err)
	}
}
