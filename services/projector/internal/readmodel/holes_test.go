package readmodel_test

import (
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

// A hole that an operator has accepted is not said again, and a later one is.
func TestHoles_ALaterOneThanWasAcceptedIsMissed(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	over := func(n, last int64) []readmodel.Lack {
		t.Helper()
		w := nth(n)
		w.Lacks = readmodeltest.Event("a", last).Sequence
		if _, err := s.Write(t.Context(), []projection.Write{w}); err != nil {
			t.Fatal(err)
		}
		var found []readmodel.Lack
		if err := s.Lacks(t.Context(), "p", func(l readmodel.Lack) error { found = append(found, l); return nil }); err != nil {
			t.Fatal(err)
		}
		return found
	}
	if _, err := s.Write(t.Context(), []projection.Write{nth(1)}); err != nil {
		t.Fatal(err)
	}
	lacks := over(4, 3)
	if len(lacks) != 1 || !lacks[0].Within || lacks[0].Missing != readmodeltest.Event("a", 3).Sequence {
		t.Fatalf("the first: got %+v, want it listed", lacks)
	}
	if err := s.AcceptLack(t.Context(), &lacks[0]); err != nil {
		t.Fatal(err)
	}
	if lacks := over(4, 3); len(lacks) != 0 {
		t.Errorf("accepted: got %+v, want nothing", lacks)
	}
	if lacks := over(7, 6); len(lacks) != 1 || lacks[0].Latest != readmodeltest.Event("a", 6).Sequence {
		t.Errorf("the next: got %+v, want it listed", lacks)
	}
}

// Who accepts a hole has not seen what is known to be missing before it only later.
func TestHoles_WhatIsMissingBeforeWhatWasAcceptedIsMissed(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	lacks := func() (found []readmodel.Lack) {
		t.Helper()
		if err := s.Lacks(t.Context(), "p", func(l readmodel.Lack) error { found = append(found, l); return nil }); err != nil {
			t.Fatal(err)
		}
		return found
	}
	write := func(w projection.Write) {
		t.Helper()
		if _, err := s.Write(t.Context(), []projection.Write{w}); err != nil {
			t.Fatal(err)
		}
	}
	accept := func() {
		t.Helper()
		for _, l := range lacks() {
			if err := s.AcceptLack(t.Context(), &l); err != nil {
				t.Fatal(err)
			}
		}
		if got := lacks(); len(got) != 0 {
			t.Errorf("accepted: got %+v, want nothing", got)
		}
	}
	write(nth(3))
	over := nth(6)
	over.Lacks = readmodeltest.Event("a", 5).Sequence
	write(over)
	accept()
	for _, n := range []int64{2, 1} {
		before := nth(n)
		before.Event = new(*before.Event)
		before.Event.Resend = contract.Resend{ID: "again"}
		write(before)
		if got := lacks(); len(got) != 1 || got[0].Missing != before.Event.Sequence {
			t.Errorf("a resent event from before the first: got %+v, want %s to be missing", got, before.Event.Sequence)
		}
		accept()
	}
}
