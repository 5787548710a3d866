package readmodel_test

import (
	"testing"

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
