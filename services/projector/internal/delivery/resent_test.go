package delivery_test

import (
	"slices"
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/session"
)

// resent are messages sent again for a group.
func resent(t *testing.T, group string, messages []session.Message) []session.Message {
	t.Helper()
	again := make([]session.Message, len(messages))
	for i, m := range messages {
		event, err := contract.Decode(m.Message, contract.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		event.Resend = contract.Resend{ID: "k3v9q2mx", Group: group}
		again[i] = m
		if again[i].Message, err = contract.Encode(event, contract.EncodeOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return again
}

func TestResent_WhatWasAppliedIsARepeat(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	again := resent(t, "", happened(t, "a", 1, 2, 3))
	// As the topic has them: live events stand before, between and behind the resent.
	all := slices.Concat(happened(t, "a", 1, 2), again[:1], happened(t, "a", 3), again[1:], happened(t, "a", 4))
	if verdicts, err := f.Hold("a").Apply(t.Context(), all); err != nil || !slices.Equal(verdicts, make([]session.Verdict, 7)) {
		t.Fatalf("got %v and %v, want all completed", verdicts, err)
	}
	if got, want := f.fields(t, "orders", "a"), `{"events":4}{"last":4}{"seen":[1,2,3,4]}`; got != want {
		t.Errorf("document: got %s, want %s", got, want)
	}
	if c := f.Counts(); c.Applied.Load() != 4 || c.Repeated.Load() != 3 {
		t.Errorf("applied %d, repeated %d; want 4, 3", c.Applied.Load(), c.Repeated.Load())
	}
}

func TestResent_ForAnotherGroupIsNotEvenRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t, group("orders"))
	others := resent(t, "orders-2", happened(t, "a", 1, 2))
	others[0].Body = []byte("{")
	all := slices.Concat(others[:1], resent(t, "orders", happened(t, "a", 1)), others[1:], happened(t, "a", 2))
	if verdicts, err := f.Hold("a").Apply(t.Context(), all); err != nil || !slices.Equal(verdicts, make([]session.Verdict, 4)) {
		t.Fatalf("got %v and %v, want all completed", verdicts, err)
	}
	if got, want := f.fields(t, "orders", "a"), `{"events":2}{"last":2}{"seen":[1,2]}`; got != want {
		t.Errorf("document: got %s, want %s", got, want)
	}
	if c := f.Counts(); c.Applied.Load() != 2 || c.Repeated.Load() != 2 {
		t.Errorf("applied %d, repeated %d; want 2, 2", c.Applied.Load(), c.Repeated.Load())
	}
}

// What is resent of a halted aggregate is parked in its place with the rest, once,
// unless it is for another group. A redrive finds applied what was.
func TestResent_OfAHaltedAggregateIsParkedOnceAndRedriven(t *testing.T) {
	t.Parallel()
	store, decider := readmodeltest.NewFake(), &mended{Projections: parse(t, counting)[:1], bad: 3}
	handler := newHandler(decider, store, group("orders"))
	events := happened(t, "a", 1, 2, 3, 4, 5)
	for _, batch := range [][]session.Message{
		events[:4], resent(t, "", events[:4]), resent(t, "orders-2", events[4:]), resent(t, "orders", events[:2]), events[4:],
	} {
		if verdicts, err := handler.Hold("a").Apply(t.Context(), batch); err != nil || len(verdicts) != len(batch) {
			t.Fatalf("got %v and %v, want all completed", verdicts, err)
		}
	}
	if parked, err := store.Parked(t.Context(), "a"); err != nil || len(parked) != 5 {
		t.Errorf("parked: got %v, %v, want each of five once", parked, err)
	}
	decider.done.Store(true)
	done, err := delivery.Redrive(t.Context(), decider, store, store, delivery.Gaps{}, "a")
	if err != nil || !done.Lifted || done.Applied != 3 || done.Repeated != 2 {
		t.Errorf("redriven: got %+v, %v, want three applied, two repeated and the halt lifted", done, err)
	}
	got, err := store.Fields(t.Context(), "orders", "a")
	if want := `{"events":5}{"last":5}{"seen":[1,2,3,4,5]}`; err != nil || got != want {
		t.Errorf("document: got %s, %v, want %s", got, err, want)
	}
}
