package witness

import (
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/expect"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/source"
)

// changesOf is a source in documents mode that saw one document be inserted, updated
// twice and deleted.
func changesOf(t *testing.T, of Documents) (*documents, *record) {
	t.Helper()
	r := newRecord(Shadowed.OfDocuments(of))
	return takeChanges(t, of, r), r
}

// takeChanges has a record take those changes in.
func takeChanges(t *testing.T, of Documents, r *record) *documents {
	t.Helper()
	d := newDocuments(of, cluster.DefaultNames(), r)
	showChanges(t, d)
	return d
}

// changesAt is the cluster time of those changes, in seconds since 1970.
const changesAt = 0x6921d1e1

// showChanges shows those changes.
func showChanges(t *testing.T, d *documents) {
	t.Helper()
	for i, operation := range []string{"insert", "update", "update", "delete"} {
		change := bson.D{
			{Key: "_id", Value: bson.D{{Key: "_data", Value: fmt.Sprintf("826921d1e10000000%d04", i+1)}}},
			{Key: "operationType", Value: operation},
			{Key: "clusterTime", Value: bson.Timestamp{T: changesAt, I: uint32(i + 1)}},
			{Key: "documentKey", Value: bson.D{{Key: "_id", Value: "o"}}},
		}
		if operation != "delete" {
			change = append(change, bson.E{Key: "fullDocument", Value: bson.D{{Key: "_id", Value: "o"}, {Key: "n", Value: int32(i)}}})
		}
		if operation == "update" {
			change = append(change, bson.E{Key: "updateDescription", Value: bson.D{{Key: "updatedFields", Value: bson.D{{Key: "n", Value: int32(i)}}}, {Key: "removedFields", Value: bson.A{}}}})
		}
		raw, err := bson.Marshal(change)
		if err != nil {
			t.Fatal(err)
		}
		d.add(raw)
	}
	if d.failed != nil || d.seen() != 4 {
		t.Fatalf("got %d changes, error %v, want 4", d.seen(), d.failed)
	}
}

// sendOf is a change's message, as it comes, showing what the document was after another.
func sendOf(d *documents, r *record, version, shows int64) validate.Send {
	this := validate.Event{Aggregate: "o", Version: version}
	s := validate.Send{Event: this, Print: r.owed[this]}
	s.Print[expect.Shown] = d.shown["o"][shows-1]
	return s
}

func TestDocuments_WhatIsLookedUpMayBeYoungerThanItsChangeAndNotOlder(t *testing.T) {
	t.Parallel()
	d, r := changesOf(t, Documents{Images: expect.Images{Full: expect.LookedUp}})
	for _, tt := range []struct {
		version, shows int64
		fine           bool
	}{
		{2, 2, true}, {2, 3, true}, {2, 4, true}, // it was deleted by then
		{2, 1, false}, {3, 2, false}, {1, 2, false}, // an insert shows what was inserted
	} {
		found := validate.Unlike(r.owed, d.excused(r.owed, []validate.Send{sendOf(d, r, tt.version, tt.shows)}))
		if (found.Count == 0) != tt.fine {
			t.Errorf("change %d shows the document of change %d: got %v, want it to be fine: %t", tt.version, tt.shows, found, tt.fine)
		}
	}
}

func TestDocuments_ChangesAreNumberedByTheirSequence(t *testing.T) {
	t.Parallel()
	d, r := changesOf(t, Documents{Images: expect.Images{Full: expect.Required}})
	send := func(sequence string) validate.Send {
		return validate.Send{Event: validate.Event{Aggregate: "o", Version: validate.Fingerprint(sequence)}}
	}
	got := d.numbered([]validate.Send{send("6921d1e100000003.826921D1E10000000304"), send("6921d1e100000009.82")})
	if got[0].Version != 3 {
		t.Errorf("the third change: got version %d, want 3", got[0].Version)
	}
	if found := validate.Unknown(r.owing, validate.EventsOf(got)); found.Count != 1 {
		t.Errorf("one of two sends is of no change: got %v", found)
	}
	if got := len(r.changes); got != 0 {
		t.Errorf("after the deletion: got %d read documents, want none", got)
	}
	if last := r.last["o"]; last.Type != "order_events.delete" || last.data != "nothing" {
		t.Errorf("last event: got %+v, want the deletion, without data", last)
	}
}

func TestDocuments_WhatIsForgivenIsNotCountedAndWhatIsLateIsOwed(t *testing.T) {
	t.Parallel()
	of := Documents{Images: expect.Images{Full: expect.Required}, Keeps: true}
	d, _ := changesOf(t, of)
	r := newRecord(Shadowed.OfDocuments(of))
	pardons := map[int64]pardon{1: due, 2: late, 3: unsent, 4: due}
	forgiven := func(e source.Stored) pardon { return pardons[e.Version] }
	err := d.each(func(c changed) error { return r.recompute(c, forgiven) })
	if err != nil || r.forgiven != 2 || len(r.events["o"]) != 2 || len(r.owing["o"]) != 3 {
		t.Errorf("got %d forgiven, events %v, owing %v, error %v, want 2, two and three", r.forgiven, r.events, r.owing, err)
	}
}

// What documents of another key, and a projection in Go, make of changes goes by no version.
func TestDocuments_AreInDocumentsOfAnotherKeyAndOfAProjectionInGo(t *testing.T) {
	t.Parallel()
	of := Documents{Images: expect.Images{Full: expect.Nothing}, Keeps: true}
	r := newRecord(Shadowed.WithKeyed().WithSteps().OfDocuments(of))
	d, all := takeChanges(t, of, r), []changed(nil)
	err := d.each(func(c changed) error { all = append(all, c); return r.addChange(c) })
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(r.keyed.documents()), "map[delete:map[changes:1] delete/o:map[changes:1] insert:map[changes:1] insert/o:map[changes:1] update:map[changes:2] update/o:map[changes:2]]"; got != want {
		t.Errorf("of another key: got %s, want %s", got, want)
	}
	if got := r.keyed.positions["o"]; got["sequence"] != r.last["o"].Sequence || got["eventId"] != r.last["o"].ID {
		t.Errorf("noted: got %v, want the last change, %v", got, r.last["o"])
	}
	steps := r.stepped.documents
	if of := steps["o/order_events.update"]; len(steps) != 4 || steps["o/0"]["events"] != int64(4) || of["events"] != int64(2) || of["sum"] != int64(0) {
		t.Errorf("in Go: got %v, want all changes under version 0, and each kind by itself", steps)
	}
	for name, tt := range map[string]struct {
		applied []int
		differ  int
	}{
		"each once": {[]int{0, 1, 2, 3}, 0}, "one lost, and another of its type applied twice": {[]int{0, 2, 2, 3}, 2},
	} {
		got := orders.Steps{}
		for _, i := range tt.applied {
			got.Apply(orders.Event{Aggregate: "o", Type: all[i].Message[expect.Label]}, all[i].Message[expect.MessageID])
		}
		if found := validate.Differences(steps, got); found.Count != tt.differ {
			t.Errorf("%s: got %v, want %d documents that differ", name, found, tt.differ)
		}
	}
}

// Many changes are acknowledged together, long after the first of them.
func TestForgive_GoesByTheClusterTimeOfChangesThatAreDocuments(t *testing.T) {
	t.Parallel()
	s := newStageOf(t, Latest.OfDocuments(Documents{Images: expect.Images{Full: expect.Required}, Keeps: true}))
	showChanges(t, s.documents)
	s.Ledger.Wrote([]orders.Event{event("o", 1), event("o", 2), event("o", 3), event("o", 4)})
	for _, tt := range []struct {
		from, to int64
		want     pardon
	}{
		{changesAt - 1, changesAt, unsent},
		{changesAt, changesAt + 1, unsent},
		{changesAt - 2, changesAt - 1, due},
		{changesAt + 1, changesAt + 2, due},
		{time.Now().Add(-time.Minute).Unix(), time.Now().Add(time.Minute).Unix(), due}, // acknowledged then
	} {
		if _, err := s.State().Collection(gapsLedger).DeleteMany(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
		insert(t, s.State().Collection(gapsLedger), bson.D{{Key: "stream", Value: "s"}, {Key: "decision", Value: "reset"}, {Key: "fromTime", Value: time.Unix(tt.from, 0)}, {Key: "toTime", Value: time.Unix(tt.to, 0)}})
		if _, _, err := s.Forgive(t.Context(), Doings{Moves: atAnyTime()}); err != nil {
			t.Fatal(err)
		}
		if got := s.forgiven(source.Stored{Event: event("o", 1)}); got != tt.want {
			t.Errorf("a line from %d to %d, against changes of %d: forgiven %v, want %v", tt.from, tt.to, int64(changesAt), got, tt.want)
		}
		v, err := s.Judge(t.Context())
		if lost := v.Violation(LostBeforeTopic); err != nil || (lost.Count == 0) != (tt.want == unsent) {
			t.Errorf("a line from %d to %d, against changes of %d: lost %v, error %v", tt.from, tt.to, int64(changesAt), lost, err)
		}
	}
}
