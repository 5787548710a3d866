package delivery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/session"
)

// braking is a replica with a brake.
type braking struct {
	*delivery.Handler
	*delivery.Brake
	store *readmodeltest.Fake
	log   *bytes.Buffer
}

func newBraking(t *testing.T, store *readmodeltest.Fake, limit int, with ...setting) *braking {
	t.Helper()
	b := &braking{store: store, log: &bytes.Buffer{}}
	b.Brake = delivery.NewBrake(store, limit, 10*time.Minute, zerolog.New(b.log))
	with = append(with, func(_ *delivery.Config, d *delivery.Deps) { d.Brake = b.Brake })
	b.Handler = newHandler(parse(t, counting), store, with...)
	return b
}

// poison has an aggregate's event fail, behind one that is applied, and tells
// whether the aggregate was halted.
func (b *braking) poison(t *testing.T, aggregate string) bool {
	t.Helper()
	messages := append(happened(t, aggregate, 1), message(t, aggregate, 2, "Doubled", `{"n":"x"}`))
	verdicts, err := b.Hold(aggregate).Apply(t.Context(), messages)
	if err == nil {
		return true
	}
	if !errors.Is(err, session.ErrPaused) || len(verdicts) != 1 {
		t.Errorf("%s: got %d verdicts and %v, want that of the first, and session.ErrPaused", aggregate, len(verdicts), err)
	}
	return false
}

func TestBrake_SoManyHaltsInSoShortATimeStopAReplicaFromHaltingMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBraking(t, readmodeltest.NewFake(), 3)
		for i := range 3 {
			if !b.poison(t, fmt.Sprint(i)) {
				t.Fatalf("halt %d is refused, want three", i)
			}
		}
		if b.poison(t, "fourth") {
			t.Error("a fourth is halted, want none")
		}
		if halted, err := b.store.List(t.Context(), 10); err != nil || len(halted) != 3 {
			t.Errorf("halted: got %v and %v, want three", halted, err)
		}
		err := b.Err()
		for _, want := range []string{"3 aggregates", "10m0s", "HALT_LIMIT", "parked redrive --all", "halts resume"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("why: got %v, want %q in it", err, want)
			}
		}
		if !strings.Contains(b.log.String(), "too many aggregates are halted") {
			t.Error("the log does not say that the brake is on")
		}
		// What other aggregates bring is applied, and a halted one's is parked.
		if verdicts, err := b.Hold("good").Apply(t.Context(), happened(t, "good", 1)); err != nil || len(verdicts) != 1 {
			t.Errorf("an event that can be projected: got %v and %v, want it applied", verdicts, err)
		}
		if verdicts, err := b.Hold("0").Apply(t.Context(), happened(t, "0", 3)); err != nil || len(verdicts) != 1 {
			t.Errorf("an event of a halted aggregate: got %v and %v, want it parked", verdicts, err)
		}
	})
}

// Halts that lie apart are no sign of one cause.
func TestBrake_IsOffWhileHaltsLieApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBraking(t, readmodeltest.NewFake(), 3)
		for i := range 12 {
			if !b.poison(t, fmt.Sprint(i)) {
				t.Fatalf("halt %d is refused, want all: there are two within ten minutes", i)
			}
			time.Sleep(6 * time.Minute)
		}
	})
}

// Neither time nor a new process gives new room. A lift does, and so does an
// operator's word.
func TestBrake_StaysOnUntilAHaltIsLiftedOrAccepted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := readmodeltest.NewFake()
		b := newBraking(t, store, 2)
		b.poison(t, "a")
		b.poison(t, "b")
		time.Sleep(24 * time.Hour)
		if b.poison(t, "c") || newBraking(t, store, 2).poison(t, "c") {
			t.Error("a third is halted a day later or by another replica, want none")
		}
		restarted := newBraking(t, store, 2)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = restarted.Run(ctx) })
		synctest.Wait()
		if !restarted.On() {
			t.Error("a restarted replica does not know that the brake is on")
		}
		mended := strings.ReplaceAll(counting, "data.n * 2", "1")
		if done, err := delivery.Redrive(t.Context(), parse(t, mended), store, store, delivery.Gaps{}, "a"); err != nil || !done.Lifted {
			t.Fatalf("redrive: got %+v and %v, want the halt lifted", done, err)
		}
		time.Sleep(2 * time.Second)
		if restarted.On() {
			t.Error("a lift does not take the brake off")
		}
		if !restarted.poison(t, "c") || !restarted.poison(t, "d") {
			t.Error("after a lift: a halt is refused, with one that is a day old")
		}
		if restarted.poison(t, "e") {
			t.Error("after a lift and two halts: another is halted, want none: they are within the time of each other")
		}
		if _, err := store.AcceptHalts(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if restarted.On() || !restarted.poison(t, "e") {
			t.Error("after the halts are accepted: a halt is refused")
		}
		cancel()
		running.Wait()
	})
}

// Sessions fail side by side, and count one after another.
func TestBrake_HoldsWhenManySessionsFailAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBraking(t, readmodeltest.NewFake(), 5)
		b.store.Fail = func(operation string) error {
			if operation == "halt" {
				time.Sleep(time.Second)
			}
			return nil
		}
		var group sync.WaitGroup
		for i := range 40 {
			group.Go(func() { b.poison(t, fmt.Sprint(i)) })
		}
		group.Wait()
		if halted, err := b.store.List(t.Context(), 100); err != nil || len(halted) != 5 {
			t.Errorf("halted: got %d and %v, want 5", len(halted), err)
		}
	})
}

func TestBrake_WithoutALimitIsNeverOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBraking(t, readmodeltest.NewFake(), 0)
		for i := range 200 {
			if !b.poison(t, fmt.Sprint(i)) {
				t.Fatalf("halt %d is refused, want none", i)
			}
		}
	})
}

// Where nobody knows how many there are, none is added.
func TestBrake_HaltsNothingWhileTheHaltsCannotBeCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBraking(t, readmodeltest.NewFake(), 3)
		away := errors.New("away")
		b.store.Fail = func(operation string) error {
			if operation == "latest halts" {
				return away
			}
			return nil
		}
		if _, err := b.Hold("a").Apply(t.Context(), []session.Message{message(t, "a", 1, "Doubled", `{"n":"x"}`)}); !errors.Is(err, away) {
			t.Errorf("got %v, want the store's error", err)
		}
		if halted, err := b.store.List(t.Context(), 10); err != nil || len(halted) != 0 {
			t.Errorf("halted: got %v and %v, want none", halted, err)
		}
	})
}

// Missing versions stop no replica: only sessions that are taken bring them.
func TestBrake_MissingVersionsDoNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBraking(t, readmodeltest.NewFake(), 2, waiting(0))
		for i := range 5 {
			aggregate := fmt.Sprint("gap-", i)
			if _, err := b.Hold(aggregate).Apply(t.Context(), happened(t, aggregate, 1, 3)); err != nil {
				t.Errorf("%s: got %v, want it halted and parked", aggregate, err)
			}
		}
		if halted, err := b.store.List(t.Context(), 10); err != nil || len(halted) != 5 {
			t.Errorf("halted: got %v and %v, want all five", halted, err)
		}
		if !b.poison(t, "a") || !b.poison(t, "b") {
			t.Error("missing versions count for the brake")
		}
		if b.poison(t, "c") {
			t.Error("a third that fails is halted, want none")
		}
		if _, err := b.Hold("gap").Apply(t.Context(), happened(t, "gap", 1, 3)); err != nil {
			t.Errorf("a missing version while the brake is on: got %v, want it halted and parked", err)
		}
	})
}
