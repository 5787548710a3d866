package delivery_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/session"
)

// discardSecond has the second event of a discarded, with nothing halted.
func discardSecond(t *testing.T, store *readmodeltest.Fake) (bad session.Message) {
	t.Helper()
	e := readmodeltest.Event("a", 2)
	bad = message(t, "a", 2, "Doubled", `{"n":"x"}`)
	_, halted := store.Halt(t.Context(), delivery.Halt{Event: *e})
	parked := store.Park(t.Context(), []delivery.Parked{{Message: bad, Event: *e}})
	discarded := store.Discard(t.Context(), e)
	_, lifted := store.Lift(t.Context(), "a")
	if err := errors.Join(halted, parked, discarded, lifted); err != nil {
		t.Fatal(err)
	}
	return bad
}

// In the midst of a batch a discarded event is completed, and all others are applied.
func TestDiscarded_OneOfABatchStopsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bad := discardSecond(t, f.store)
	messages := slices.Concat(happened(t, "a", 1), []session.Message{bad}, happened(t, "a", 3))
	verdicts, err := f.Hold("a").Apply(t.Context(), messages)
	if err != nil || len(verdicts) != 3 || slices.ContainsFunc(verdicts, func(v session.Verdict) bool { return v.DeadLetter }) {
		t.Errorf("got %v and %v, want all three completed", verdicts, err)
	}
	if text, err := f.store.Fields(t.Context(), "orders", "a"); err != nil || !strings.Contains(text, `"seen":[1,3]`) {
		t.Errorf("a: got %s and %v, want the others applied", text, err)
	}
	if c := f.Counts(); c.Discarded.Load() != 1 || c.Applied.Load() != 2 || c.Halts.Load() != 0 {
		t.Errorf("got %d discarded, %d applied and %d halts, want 1, 2 and none", c.Discarded.Load(), c.Applied.Load(), c.Halts.Load())
	}
}

// While it cannot be known whether an event was discarded, nothing is halted.
func TestDiscarded_NothingIsHaltedBeforeThatIsKnown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	gone := errors.New("gone")
	f.store.Fail = func(operation string) error {
		if operation == "discarded" {
			return gone
		}
		return nil
	}
	verdicts, err := f.Hold("a").Apply(t.Context(), append(happened(t, "a", 1), message(t, "a", 2, "Doubled", `{"n":"x"}`)))
	if !errors.Is(err, gone) || len(verdicts) != 1 || f.Counts().Halts.Load() != 0 {
		t.Errorf("got %v, %v and %d halts, want the first completed and the error", verdicts, err, f.Counts().Halts.Load())
	}
}

func TestPutBack_ADiscardedEventStaysAndHoldsUpNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		r := newReturning(t, store)
		bad := discardSecond(t, store)
		fates, why, redriven := r.run(t, slices.Concat(happened(t, "a", 1), []session.Message{bad}, happened(t, "a", 3))...)
		if want := []delivery.ReturnFate{delivery.ReturnParked, delivery.ReturnDiscarded, delivery.ReturnParked}; !slices.Equal(fates, want) || !strings.Contains(why, "projector dlq discard") {
			t.Errorf("got %v (%s), want %v", fates, why, want)
		}
		if len(redriven) != 1 || !redriven[0].Lifted || !slices.Equal(r.removed, []string{"a-1", "a-3"}) || !strings.Contains(r.orders(t), `"seen":[1,3]`) {
			t.Errorf("got %+v, removed %v, %s; want the others applied", redriven, r.removed, r.orders(t))
		}
	})
}
