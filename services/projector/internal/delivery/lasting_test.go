package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/session"
)

// odd is a store that answers some events with an error.
type odd struct {
	*readmodeltest.Fake
	err    error
	events []string
	// whole refuses a batch as a whole, without a word about its writes.
	whole bool
	all   atomic.Bool
}

func (o *odd) Write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	for i := range writes {
		if o.all.Load() || slices.Contains(o.events, writes[i].Event.ID) {
			if o.whole {
				return make([]delivery.Outcome, len(writes)), o.err
			}
			outcomes, err := o.Fake.Write(ctx, writes[:i])
			if err == nil {
				err = o.err
			}
			return append(outcomes, make([]delivery.Outcome, len(writes)-i)...), err
		}
	}
	return o.Fake.Write(ctx, writes)
}

func newOdd(t *testing.T, err error, events ...string) (*odd, *delivery.Handler) {
	t.Helper()
	o := &odd{Fake: readmodeltest.NewFake(), err: err, events: events}
	return o, newHandler(parse(t, counting)[:1], o, func(c *delivery.Config, _ *delivery.Deps) { c.HaltAfter = 5 * time.Minute })
}

var errUnknown = errors.New("(Location424242) nobody knows what this means")

// drive offers the aggregates' messages again and again, as the engine does, for a
// time; what has a verdict is gone.
func drive(t *testing.T, h *delivery.Handler, queues map[string][]session.Message, lasts time.Duration) (failures map[string][]error) {
	t.Helper()
	failures = map[string][]error{}
	for began := time.Now(); time.Since(began) < lasts; time.Sleep(5 * time.Second) {
		for aggregate, queue := range queues {
			verdicts, err := h.Hold(aggregate).Apply(t.Context(), queue[:min(5, len(queue))])
			queues[aggregate] = queue[len(verdicts):]
			if err != nil {
				failures[aggregate] = append(failures[aggregate], err)
			}
		}
	}
	return failures
}

func queueOf(t *testing.T, aggregate string, n int64) []session.Message {
	t.Helper()
	var versions []int64
	for v := range n {
		versions = append(versions, v+1)
	}
	return happened(t, aggregate, versions...)
}

func TestLasting_WhatAloneCannotBeStoredIsHaltedWhileOthersFlow(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		t.Run(fmt.Sprintf("refused as a whole %t", whole), func(t *testing.T) {
			t.Parallel()
			lastingAlone(t, whole)
		})
	}
}

func lastingAlone(t *testing.T, whole bool) {
	synctest.Test(t, func(t *testing.T) {
		store, h := newOdd(t, errUnknown, "a-3", "b-1")
		store.whole = whole
		queues := map[string][]session.Message{"a": queueOf(t, "a", 5), "b": queueOf(t, "b", 2), "well": queueOf(t, "well", 1000)}
		failures := drive(t, h, queues, 4*time.Minute)
		f := fixture{store: store.Fake}
		if len(f.parked(t, "a")) != 0 || len(f.parked(t, "b")) != 0 {
			t.Errorf("before the time is over: parked %v and %v, want none", f.parked(t, "a"), f.parked(t, "b"))
		}
		for _, err := range failures["a"][1:] {
			if !errors.Is(err, session.ErrRest) || !errors.Is(err, errUnknown) {
				t.Fatalf("failure: got %v, want the session to rest, and why", err)
			}
		}
		drive(t, h, queues, 2*time.Minute)
		if a, b := f.parked(t, "a"), f.parked(t, "b"); !slices.Equal(a, []int64{3, 4, 5}) || !slices.Equal(b, []int64{1, 2}) {
			t.Errorf("parked: got %v and %v, want what failed and what follows, and no more", a, b)
		}
		if got := f.fields(t, "orders", "a"); got != `{"events":2}{"last":2}{"seen":[1,2]}` {
			t.Errorf("document: got %s, want what stands before the failed one", got)
		}
		if len(queues["a"])+len(queues["b"]) != 0 || len(failures["well"]) != 0 {
			t.Errorf("left %d and %d, the other failed %d times; want all settled", len(queues["a"]), len(queues["b"]), len(failures["well"]))
		}
	})
}

// When everything fails it is an outage, however long it takes, and so it is where
// the server cannot be reached by some.
func TestLasting_AnOutageHaltsNobody(t *testing.T) {
	t.Parallel()
	unreachable := fmt.Errorf("%w: connection reset", delivery.ErrUnreachable)
	for _, tt := range []struct {
		name string
		err  error
		all  bool
	}{
		{"everything fails", errUnknown, true},
		{"everything is out of reach", unreachable, true},
		{"some is out of reach", unreachable, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, h := newOdd(t, tt.err, "a-1", "b-1")
				queues := map[string][]session.Message{"a": queueOf(t, "a", 5), "b": queueOf(t, "b", 2), "well": queueOf(t, "well", 10000)}
				drive(t, h, queues, time.Minute) // it begins in good times
				store.all.Store(tt.all)
				drive(t, h, queues, time.Hour)
				store.all.Store(false)
				store.events = nil
				drive(t, h, queues, time.Minute)
				if halts := h.Counts().Halts.Load(); halts != 0 {
					t.Errorf("halts: got %d, want none", halts)
				}
				if len(queues["a"])+len(queues["b"]) != 0 {
					t.Errorf("left: %d and %d, want all applied after the outage", len(queues["a"]), len(queues["b"]))
				}
			})
		})
	}
}

// A failure of long ago is not this one: another replica may have stored it.
func TestLasting_FailuresFarApartAreNotAdded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, h := newOdd(t, errUnknown, "a-1")
		well := queueOf(t, "well", 100)
		for i := range 5 {
			for range 5 {
				if _, err := h.Hold("well").Apply(t.Context(), well[:1]); err != nil {
					t.Fatal(err)
				}
				well = well[1:]
			}
			if _, err := h.Hold("a").Apply(t.Context(), happened(t, "a", 1)); !errors.Is(err, session.ErrRest) {
				t.Errorf("attempt %d: got %v, want it to rest", i, err)
			}
			time.Sleep(6 * time.Minute)
		}
	})
}

// Two others are not enough to say that it is this aggregate's own fault, however
// long it takes; a third is.
func TestLasting_TakesThreeOthersToBlameOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, h := newOdd(t, errUnknown, "a-1")
		well, began := queueOf(t, "well", 4), time.Now()
		// at has another one stored where stored is set, and then this one fail.
		at := func(after time.Duration, stored bool) {
			t.Helper()
			time.Sleep(after - time.Since(began))
			if stored {
				if _, err := h.Hold("well").Apply(t.Context(), well[:1]); err != nil {
					t.Fatal(err)
				}
				well = well[1:]
			}
			_, err := h.Hold("a").Apply(t.Context(), happened(t, "a", 1))
			if halted, _ := store.Halted(t.Context(), "a"); (halted != "") != (err == nil) || err != nil && !errors.Is(err, session.ErrRest) {
				t.Errorf("after %s: halted %q and %v", after, halted, err)
			}
		}
		at(0, true)
		// Each failure is near enough to the one before, and to another's success.
		at(30*time.Second, false)
		at(150*time.Second, true)
		at(180*time.Second, false)
		at(300*time.Second, true)
		if halts := h.Counts().Halts.Load(); halts != 0 {
			t.Errorf("after 5 minutes and two others: %d halts, want none", halts)
		}
		at(301*time.Second, true)
		if halts := h.Counts().Halts.Load(); halts != 1 {
			t.Errorf("after three others: %d halts, want one", halts)
		}
	})
}
