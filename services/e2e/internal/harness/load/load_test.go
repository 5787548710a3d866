package load

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/payload"
)

// store takes events, each insert as long as it says.
type store struct {
	takes   time.Duration
	fails   error
	events  []orders.Event
	inserts int
}

func (s *store) Insert(_ context.Context, events []orders.Event) error {
	time.Sleep(s.takes) //nolint:forbidigo // in a bubble, where it is exact
	s.inserts++
	if s.fails != nil {
		return s.fails
	}
	s.events = append(s.events, events...)
	return nil
}

func generated() func() (orders.Event, bool) { return Generated(orders.NewGenerator(1, 10)) }

func done() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func TestLoad_TheRateHolds(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]time.Duration{"with quick inserts": time.Millisecond, "with inserts longer than the pace": 90 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, told := &store{takes: takes}, 0
				l := Load{To: s, Rate: 500, Next: generated(), Least: 10 * time.Second, Wrote: func(e []orders.Event) { told += len(e) }}
				if err := l.Run(t.Context(), done()); err != nil {
					t.Fatal(err)
				}
				if got := len(s.events); got < 4900 || got > 5000 {
					t.Errorf("events in 10 s at 500/s: got %d, want about 5000", got)
				}
				if told != len(s.events) {
					t.Errorf("events told of: got %d, want %d", told, len(s.events))
				}
			})
		})
	}
}

func TestLoad_WritingGoesOnUntilItIsEnough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, enough := &store{}, make(chan struct{})
		time.AfterFunc(30*time.Second, func() { close(enough) })
		l := Load{To: s, Rate: 100, Next: generated(), Least: time.Second, Wrote: func([]orders.Event) {}}
		if err := l.Run(t.Context(), enough); err != nil {
			t.Fatal(err)
		}
		if got := len(s.events); got < 2990 || got > 3010 {
			t.Errorf("events in 30 s at 100/s: got %d, want about 3000", got)
		}
	})
}

func TestLoad_AListEndsTheWriting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		events := make([]orders.Event, 1234)
		l := Load{To: s, Rate: 100_000, Next: Listed(events), Least: time.Hour, Wrote: func([]orders.Event) {}}
		if err := l.Run(t.Context(), make(chan struct{})); err != nil {
			t.Fatal(err)
		}
		if got, want := len(s.events), len(events); got != want {
			t.Errorf("events: got %d, want %d", got, want)
		}
	})
}

func TestLoad_WithoutARateBatchesAreFull(t *testing.T) {
	t.Parallel()
	s := &store{}
	l := Load{To: s, Next: Limited(10_000, generated()), Wrote: func([]orders.Event) {}}
	if err := l.Run(t.Context(), make(chan struct{})); err != nil {
		t.Fatal(err)
	}
	if got, want := s.inserts, 10; got != want || len(s.events) != 10_000 {
		t.Errorf("got %d events in %d inserts, want 10000 in %d", len(s.events), got, want)
	}
}

func TestLoad_AFailedInsertEndsTheWriting(t *testing.T) {
	t.Parallel()
	s := &store{fails: errors.New("disk full")}
	l := Load{To: s, Next: generated(), Wrote: func([]orders.Event) { t.Error("told of a batch that failed") }}
	if err := l.Run(t.Context(), make(chan struct{})); !errors.Is(err, s.fails) {
		t.Errorf("error: got %v, want %v", err, s.fails)
	}
}

func TestLoad_CancellingEndsTheWriting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		l := Load{To: &store{}, Rate: 10, Next: generated(), Least: time.Hour, Wrote: func([]orders.Event) {}}
		if err := l.Run(ctx, make(chan struct{})); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error: got %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

func TestLaden_AddsToSomeEventsAndDatedMovesAFew(t *testing.T) {
	t.Parallel()
	next := Dated(1, Laden(1, payload.AnyName, generated()))
	laden, old := 0, 0
	for range 1000 {
		e, _ := next()
		if _, found := e.Data.(orders.Data)["laden"]; found {
			laden++
		}
		if e.Time.Year() < 1970 {
			old++
		}
	}
	if laden < 300 || laden > 700 || old == 0 || old > 100 {
		t.Errorf("of 1000 events: got %d laden and %d from long ago, want about half and a few", laden, old)
	}
}
