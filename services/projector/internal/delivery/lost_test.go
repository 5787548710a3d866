package delivery_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

// halted is a store in which the second event of a has failed, with the third
// behind it, and a decider that is mended.
func halted(t *testing.T) (*readmodeltest.Fake, *mended, *delivery.Handler) {
	t.Helper()
	store := readmodeltest.NewFake()
	decider := &mended{Projections: parse(t, counting), bad: 2}
	h := newHandler(decider, store)
	if _, err := h.Hold("a").Apply(t.Context(), happened(t, "a", 1, 2, 3)); err != nil {
		t.Fatal(err)
	}
	return store, decider, h
}

func TestRedrive_WhatWasAppliedOverIsNoRepeat(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"and nothing since": false, "and the aggregate is halted again": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, decider, h := halted(t)
				store.Lose("a", true, false)
				if _, err := h.Hold("a").Apply(t.Context(), happened(t, "a", 4)); err != nil {
					t.Fatal(err)
				}
				if again {
					decider.bad = 5
					if _, err := h.Hold("a").Apply(t.Context(), happened(t, "a", 5)); err != nil {
						t.Fatal(err)
					}
				}
				decider.done.Store(true)
				done, err := delivery.Redrive(t.Context(), decider, store, store, delivery.Gaps{}, "a")
				if err != nil || done.Lifted || done.FailedEventID != "a-2" || done.Repeated != 0 || !strings.Contains(done.Reason, `event "a-4"`) {
					t.Errorf("got %+v and %v, want it stopped at what was applied over", done, err)
				}
				var left []string
				gaps := delivery.Gaps{Lost: true, Left: func(e *contract.Event, _ string) { left = append(left, e.ID) }}
				done, err = delivery.Redrive(t.Context(), decider, store, store, gaps, "a")
				if err != nil || !done.Lifted || done.Lost != 2 || done.Repeated != 0 || fmt.Sprint(left) != "[a-2 a-3]" {
					t.Errorf("accepted: got %+v and %v, %v left out; want the halt lifted, and both named and counted", done, err, left)
				}
			})
		})
	}
}

// A message that comes again while its aggregate is halted at a later event was
// applied before that.
func TestRedrive_WhatComesAgainIsARepeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		decider := &mended{Projections: parse(t, counting), bad: 3}
		h := newHandler(decider, store)
		for _, versions := range [][]int64{{1, 2, 3}, {1, 2, 3}} {
			if _, err := h.Hold("a").Apply(t.Context(), happened(t, "a", versions...)); err != nil {
				t.Fatal(err)
			}
		}
		decider.bad = 5
		if _, err := h.Hold("a").Apply(t.Context(), happened(t, "a", 4, 5)); err != nil {
			t.Fatal(err)
		}
		done, err := delivery.Redrive(t.Context(), decider, store, store, delivery.Gaps{}, "a")
		if err != nil || done.FailedEventID != "a-5" || done.Repeated != 2 || done.Applied != 2 {
			t.Errorf("got %+v and %v, want two repeats, two applied, and the next to fail", done, err)
		}
		// So was what a redrive has applied that came half way.
		if _, err := h.Hold("a").Apply(t.Context(), happened(t, "a", 3, 4)); err != nil {
			t.Fatal(err)
		}
		decider.done.Store(true)
		done, err = delivery.Redrive(t.Context(), decider, store, store, delivery.Gaps{}, "a")
		if err != nil || !done.Lifted || done.Repeated != 2 || done.Applied != 1 {
			t.Errorf("got %+v and %v, want two repeats and the failed one applied", done, err)
		}
	})
}

// A redrive that was killed after a write has the event stored, and goes on.
func TestRedrive_WhatIsStoredAlreadyIsARepeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, decider, _ := halted(t)
		decider.done.Store(true)
		writes, err := decider.Decide(changeOf(t, happened(t, "a", 2)[0]))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Write(t.Context(), writes); err != nil {
			t.Fatal(err)
		}
		done, err := delivery.Redrive(t.Context(), decider, store, store, delivery.Gaps{}, "a")
		if err != nil || !done.Lifted || done.Repeated != 1 || done.Applied != 1 {
			t.Errorf("got %+v and %v, want one repeat and one applied", done, err)
		}
	})
}

// Another redrive that has gone ahead since the messages were read has lost nothing.
func TestRedrive_WhatAnotherOneHasAppliedIsARepeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, decider, _ := halted(t)
		decider.done.Store(true)
		var other delivery.Redriven
		ahead := false
		store.Fail = func(operation string) (err error) {
			if operation == "write" && !ahead {
				ahead = true
				other, err = delivery.Redrive(t.Context(), decider, store, store, delivery.Gaps{}, "a")
			}
			return err
		}
		done, err := delivery.Redrive(t.Context(), decider, store, store, delivery.Gaps{}, "a")
		if err != nil || !done.Lifted || done.Repeated != 2 || other.Applied != 2 {
			t.Errorf("got %+v and %v beside %+v, want two repeats", done, err, other)
		}
	})
}

// doubled stores a fourth event of a, which one projection follows, as one that knows
// nothing of the halt.
func doubled(t *testing.T, store *readmodeltest.Fake) {
	t.Helper()
	writes, err := parse(t, counting).Decide(changeOf(t, message(t, "a", 4, "Doubled", `{"n":1}`)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Write(t.Context(), writes); err != nil {
		t.Fatal(err)
	}
}

// total is what the projection has that follows no fourth event.
func total(t *testing.T, store *readmodeltest.Fake) string {
	t.Helper()
	text, err := store.Fields(t.Context(), "totals", "a")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A replica that knew nothing of the halt may apply a later event in the midst of a
// redrive: the operator is told who has the earlier one.
func TestRedrive_SaysWhoHasWhatWasOvertakenWhileItWasApplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, decider, _ := halted(t)
		decider.done.Store(true)
		late := false
		store.Fail = func(operation string) error {
			if operation == "write" && !late {
				late = true
				doubled(t, store)
			}
			return nil
		}
		done, err := delivery.Redrive(t.Context(), decider, store, store, delivery.Gaps{}, "a")
		if err != nil || done.FailedEventID != "a-2" || done.Applied != 0 || !strings.Contains(done.Reason, `event "a-4". Projections ["totals"] have applied it.`) {
			t.Errorf("got %+v and %v, want it stopped, and who has the event", done, err)
		}
	})
}

// What another redrive has taken away unapplied is applied by nobody.
func TestRedrive_WhatAnotherOneHasGivenUpIsNotApplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, decider, _ := halted(t)
		decider.done.Store(true)
		doubled(t, store)
		var other delivery.Redriven
		ahead := false
		store.Fail = func(operation string) (err error) {
			if operation == "position" && !ahead {
				ahead = true
				other, err = delivery.Redrive(t.Context(), decider, store, store, delivery.Gaps{Lost: true}, "a")
			}
			return err
		}
		done, err := delivery.Redrive(t.Context(), decider, store, store, delivery.Gaps{}, "a")
		if got := total(t, store); err != nil || !done.Lifted || done.Applied != 0 || other.Lost != 2 || got != `{"sum":1}` {
			t.Errorf("got %+v and %v beside %+v, and %s; want nothing applied of what the other one has taken away", done, err, other, got)
		}
	})
}

func TestRedrive_WhatIsParkedAndGoneIsMissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, decider, _ := halted(t)
		decider.done.Store(true)
		store.Lose("a", false, true)
		done, err := delivery.Redrive(t.Context(), decider, store, store, delivery.Gaps{}, "a")
		if err != nil || done.Lifted || done.FailedEventID != "a-2" || !strings.Contains(done.Reason, "2 messages") {
			t.Errorf("got %+v and %v, want the halt kept and what is missing named", done, err)
		}
	})
}

// A write that is sent again behind a refused one was stored by the first.
func TestApply_WhatIsSentAgainBehindARefusedWriteWasAppliedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixtureOf(t, parse(t, counting)[:1])
		if _, err := f.Hold("a").Apply(t.Context(), append(happened(t, "a", 1), message(t, "a", 2, "Broken", `{"n":1}`))); err != nil {
			t.Fatal(err)
		}
		if counts := f.Counts(); counts.Applied.Load() != 1 || counts.Repeated.Load() != 0 || counts.Parked.Load() != 1 {
			t.Errorf("got %d applied, %d repeated and %d parked, want 1, 0 and 1", counts.Applied.Load(), counts.Repeated.Load(), counts.Parked.Load())
		}
	})
}
