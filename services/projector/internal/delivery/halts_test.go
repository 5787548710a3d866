package delivery_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/session"
)

// replica is a projector of several that share a read database.
type replica struct {
	*delivery.Handler
	halts *delivery.Halts
}

func newReplica(t *testing.T, store *readmodeltest.Fake, source string) *replica {
	t.Helper()
	return newReplicaOf(parse(t, source), store)
}

func newReplicaOf(decider delivery.Decider, store *readmodeltest.Fake) *replica {
	halts := delivery.NewHalts(store)
	return &replica{newHandler(decider, store, func(_ *delivery.Config, d *delivery.Deps) { d.Halts = halts }), halts}
}

// A replica whose list was read just before the halt must not apply what comes
// after the halted event, however fast the session gets to it.
func TestHalts_NoReplicaAppliesWhatFollowsAHalt(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		// between happens after the halt was stored and before the next holder.
		crash bool
	}{
		{"when the one that halts goes on", false},
		{"when the one that halts is gone right after, and another parks", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := readmodeltest.NewFake()
				first, second, third := newReplica(t, store, counting), newReplica(t, store, counting), newReplica(t, store, counting)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				// The third replica's list is as old as a trusted one can be.
				lists := make(chan error, 1)
				slow, stopLists := context.WithCancel(ctx)
				go func() { lists <- third.halts.Run(slow) }()
				synctest.Wait()
				stopLists()
				if err := <-lists; err != nil {
					t.Fatal(err)
				}

				poison := []session.Message{message(t, "a", 1, "Doubled", `{"n":"x"}`)}
				holder := first
				if tt.crash {
					// It stores the halt and is cancelled before it parks.
					cut, stop := context.WithCancel(ctx)
					store.Fail = func(operation string) error {
						if operation == "halt" {
							time.AfterFunc(time.Millisecond, stop)
						}
						return nil
					}
					if verdicts, err := first.Hold("a").Apply(cut, poison); !errors.Is(err, context.Canceled) || len(verdicts) != 0 {
						t.Fatalf("the cut one: got %v and %v, want no verdict", verdicts, err)
					}
					holder = second
				}
				if verdicts, err := holder.Hold("a").Apply(ctx, poison); err != nil || len(verdicts) != 1 {
					t.Fatalf("park: got %v and %v, want one verdict", verdicts, err)
				}
				// Completed now, so the next message may come to anyone.
				if _, err := third.Hold("a").Apply(ctx, happened(t, "a", 2)); err != nil {
					t.Fatal(err)
				}
				if text, _ := store.Fields(ctx, "orders", "a"); text != "" {
					t.Errorf("document: got %s, want nothing applied after the halt", text)
				}
				if parked, _ := store.Parked(ctx, "a"); len(parked) != 2 {
					t.Errorf("parked: got %v, want both messages", parked)
				}
			})
		})
	}
}

func TestHalts_HaltsAreKnownWithoutAskingEachTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		var lookups, listings atomic.Int64
		var down atomic.Bool
		store.Fail = func(operation string) error {
			switch operation {
			case "halted":
				lookups.Add(1)
			case "list":
				listings.Add(1)
				if down.Load() {
					return errors.New("down")
				}
			}
			return nil
		}
		if _, err := store.Halt(t.Context(), delivery.Halt{Event: *readmodeltest.Event("halted", 1)}); err != nil {
			t.Fatal(err)
		}
		halts := delivery.NewHalts(store)
		is := func(aggregate string, want bool) {
			t.Helper()
			if got, err := halts.Halted(t.Context(), aggregate); err != nil || got != want {
				t.Errorf("%s: got %t and %v, want %t", aggregate, got, err, want)
			}
		}
		is("free", false)
		if lookups.Load() != 1 {
			t.Errorf("lookups without a list: got %d, want 1", lookups.Load())
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- halts.Run(ctx) }()
		synctest.Wait()
		for range 100 {
			is("free", false)
		}
		if lookups.Load() != 1 {
			t.Errorf("lookups with a fresh list: got %d, want no more", lookups.Load())
		}
		is("halted", true)
		if n, known := halts.Count(); n != 1 || !known {
			t.Errorf("count: got %d and %t, want 1", n, known)
		}

		if lifted, err := store.Lift(t.Context(), "halted"); err != nil || !lifted {
			t.Fatalf("lift: got %t and %v", lifted, err)
		}
		is("halted", false) // a lifted one is found out at once

		down.Store(true)
		time.Sleep(10 * time.Second)
		before := lookups.Load()
		is("free", false)
		if lookups.Load() != before+1 {
			t.Errorf("lookups with a stale list: got %d more, want 1", lookups.Load()-before)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestHalts_ParkingGoesOnAfterAnInterruption(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		r := newReplica(t, store, counting)
		parks := 0
		store.Fail = func(operation string) error {
			if operation == "park" {
				if parks++; parks == 2 {
					return errors.New("down")
				}
			}
			return nil
		}
		messages := append([]session.Message{message(t, "a", 1, "Doubled", `{"n":"x"}`)}, happened(t, "a", 2, 3)...)
		verdicts, err := r.Hold("a").Apply(t.Context(), messages)
		if err == nil || len(verdicts) != 1 {
			t.Fatalf("got %v and %v, want one verdict and a failure", verdicts, err)
		}
		verdicts, err = r.Hold("a").Apply(t.Context(), messages[1:])
		if err != nil || !slices.Equal(verdicts, make([]session.Verdict, 2)) {
			t.Fatalf("again: got %v and %v, want the other two", verdicts, err)
		}
		if parked, _ := store.Parked(t.Context(), "a"); len(parked) != 3 {
			t.Errorf("parked: got %v, want all three, each once", parked)
		}
	})
}
