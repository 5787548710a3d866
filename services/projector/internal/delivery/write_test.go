package delivery_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"changerelay/services/projector/internal/session"
)

func TestDelivery_WhatTheStoreRejectsHaltsItsAggregateWithAllBeforeItStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		// The totals of the aggregate are in foreign hands.
		if err := f.store.PutForeign(t.Context(), "totals", "a"); err != nil {
			t.Fatal(err)
		}
		messages := append([]session.Message{message(t, "a", 1, "Doubled", `{"n":1}`)}, happened(t, "a", 2, 3)...)
		verdicts, err := f.Hold("a").Apply(t.Context(), messages)
		if err != nil || !slices.Equal(verdicts, make([]session.Verdict, 3)) {
			t.Fatalf("got %v and %v, want all completed", verdicts, err)
		}
		if got := f.parked(t, "a"); !slices.Equal(got, []int64{2, 3}) {
			t.Errorf("parked: got %v, want 2 and 3", got)
		}
		// Orders are written before totals, so the refusal comes before the
		// totals of the events in front of it.
		messages = append(happened(t, "b", 1, 2), message(t, "b", 3, "Broken", `{"n":1}`))
		if verdicts, err := f.Hold("b").Apply(t.Context(), messages); err != nil || len(verdicts) != 3 {
			t.Fatalf("got %v and %v, want all completed", verdicts, err)
		}
		if got := f.parked(t, "b"); !slices.Equal(got, []int64{3}) {
			t.Errorf("parked: got %v, want 3", got)
		}
		if got := f.fields(t, "totals", "b"); got != `{"sum":3}` {
			t.Errorf("totals of the events before it: got %s, want both", got)
		}
	})
}

// Where events write to several collections, a batch that fails is stored nowhere.
func TestDelivery_APassingFailureStoresNothingOfABatchForSeveralCollections(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	down, writes := errors.New("not primary"), 0
	f.store.Fail = func(operation string) error {
		if operation == "write" {
			if writes++; writes > 5 { // 3 orders, 2 totals
				return down
			}
		}
		return nil
	}
	verdicts, err := f.Hold("a").Apply(t.Context(), happened(t, "a", 1, 2, 3))
	if !errors.Is(err, down) || len(verdicts) != 0 {
		t.Errorf("got %v and %v, want no verdict and the failure", verdicts, err)
	}
	if got := f.fields(t, "orders", "a") + f.fields(t, "totals", "a"); got != "" {
		t.Errorf("documents: got %s, want none", got)
	}
}

func TestDelivery_AFailureThatPassesGivesVerdictsOnlyForWhatIsStored(t *testing.T) {
	t.Parallel()
	f := newFixtureOf(t, parse(t, counting)[:1])
	down := errors.New("not primary")
	writes := 0
	f.store.Fail = func(operation string) error {
		if operation == "write" {
			if writes++; writes > 2 {
				return down
			}
		}
		return nil
	}
	hold := f.Hold("a")
	messages := happened(t, "a", 1, 2, 3)
	verdicts, err := hold.Apply(t.Context(), messages)
	if !errors.Is(err, down) || len(verdicts) != 2 {
		t.Fatalf("got %v and %v, want two verdicts and the failure", verdicts, err)
	}
	writes = 0
	verdicts, err = hold.Apply(t.Context(), messages[2:])
	if err != nil || len(verdicts) != 1 {
		t.Fatalf("again: got %v and %v, want the third", verdicts, err)
	}
	if got, want := f.fields(t, "orders", "a"), `{"events":3}{"last":3}{"seen":[1,2,3]}`; got != want {
		t.Errorf("documents: got %s, want %s", got, want)
	}
	if got := len(f.parked(t, "a")); got != 0 {
		t.Errorf("parked: got %d, want none: the failure passes", got)
	}
}

func TestDelivery_NoWriteBeginsAfterTheContextHasEnded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("lock lost")
	f.store.Fail = func(operation string) error {
		if operation != "halted" {
			t.Errorf("%s after the context has ended", operation)
		}
		cancel(cause)
		return nil
	}
	if verdicts, err := f.Hold("a").Apply(ctx, happened(t, "a", 1)); !errors.Is(err, cause) || len(verdicts) != 0 {
		t.Errorf("got %v and %v, want no verdict and the cause", verdicts, err)
	}
}
