package readmodel_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/sandboxtest"
)

func nth(n int64) projection.Write {
	return projection.Write{
		Projection: "p", Collection: "c", ID: "a", Event: readmodeltest.Event("a", n),
		Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "events", Value: 1}}}},
	}
}

// A copy of what has no versions is placed at the time of the copy: one that is made
// later does not begin later.
func TestBegins_EventsWithoutVersionsNoteNoBeginning(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	w := nth(5)
	w.Event.Version, w.Event.Sequence = contract.Version{}, contract.Sequence(w.Event.Position)
	keyed := w
	keyed.Projection, keyed.Collection, keyed.Keyed = "k", "k", true
	if _, err := s.Write(t.Context(), []projection.Write{w, keyed}); err != nil {
		t.Fatal(err)
	}
	if first := sandboxtest.Documents(t, s.db, "c")["a"].Lookup("_relay", "first"); first.Type != 0 {
		t.Errorf("the document begins at %s, want that it does not say", first)
	}
	n, err := s.db.Collection(projection.Positions).CountDocuments(t.Context(), bson.D{{Key: "first", Value: bson.D{{Key: "$exists", Value: true}}}})
	if n != 0 || err != nil {
		t.Errorf("the ledger: got %d and %v, want none that begins", n, err)
	}
}

// Of an aggregate that events have deleted and begun anew, those up to the deletion are
// not missed, also where its tombstone has gone.
func TestBegins_WhatADeletionEndsIsNotMissed(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	if _, err := s.Write(t.Context(), []projection.Write{nth(4)}); err != nil {
		t.Fatal(err)
	}
	lacking := func(resent ...projection.Write) (found []readmodel.Lack) {
		t.Helper()
		for i := range resent {
			resent[i].Event.Resend = contract.Resend{ID: "x"}
		}
		if _, err := s.Write(t.Context(), resent); err != nil {
			t.Fatal(err)
		}
		if err := s.Lacks(t.Context(), "", func(l readmodel.Lack) error { found = append(found, l); return nil }); err != nil {
			t.Fatal(err)
		}
		return found
	}
	if got := lacking(nth(1)); len(got) != 1 || got[0].Missing != readmodeltest.Event("a", 1).Sequence || got[0].First != readmodeltest.Event("a", 4).Sequence {
		t.Errorf("before the deletion: got %+v, want it listed", got)
	}
	deletion := nth(2)
	deletion.Update, deletion.Delete = nil, true
	if got := lacking(deletion); len(got) != 0 {
		t.Errorf("with the deletion: got %+v, want nothing", got)
	}
	if got := lacking(nth(3)); len(got) != 1 {
		t.Errorf("behind the deletion: got %+v, want it listed", got)
	}
	if got := lacking(); len(got) != 1 {
		t.Errorf("without anything more: got %+v, want it listed", got)
	}
}

// A position is written field by field, so that the beginning stays; nothing else of the
// one before does, and of a tombstone nothing at all.
func TestBegins_APositionLeavesNothingElseOfTheOneBefore(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	stored := func(w projection.Write) string {
		t.Helper()
		if _, err := s.Write(t.Context(), []projection.Write{w}); err != nil {
			t.Fatal(err)
		}
		elements, err := sandboxtest.Documents(t, s.db, "c")["a"].Lookup("_relay").Document().Elements()
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, e := range elements {
			keys = append(keys, e.Key())
		}
		slices.Sort(keys)
		return strings.Join(keys, " ")
	}
	full, bare, deletion, after := nth(1), nth(2), nth(3), nth(4)
	full.By, full.Halted = "somebody", &projection.Halted{Reason: "x"}
	if got, want := stored(full), "aggregateVersion by eventId eventTime eventType first halted position sequence source term updatedAt"; got != want {
		t.Errorf("with all there may be: got %s, want %s", got, want)
	}
	bare.Event.Time = time.Time{}
	if got, want := stored(bare), "aggregateVersion eventId eventType first position sequence source term updatedAt"; got != want {
		t.Errorf("with less: got %s, want %s", got, want)
	}
	deletion.Update, deletion.Delete = nil, true
	stored(deletion)
	if got, want := stored(after), "aggregateVersion eventId eventTime eventType position sequence source term updatedAt"; got != want {
		t.Errorf("behind a tombstone: got %s, want %s", got, want)
	}
}
