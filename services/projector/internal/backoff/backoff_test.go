package backoff

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoff_WaitsDoubleUpToTheCap(t *testing.T) {
	t.Parallel()
	b := Backoff{Initial: 100 * time.Millisecond, Max: time.Second}
	for attempt, step := range []time.Duration{100, 200, 400, 800, 1000, 1000} {
		step *= time.Millisecond
		if got := b.Next(); got < step/2 || got > step {
			t.Errorf("wait %d: got %s, want between %s and %s", attempt, got, step/2, step)
		}
	}
	b.Reset()
	if got := b.Next(); got > 100*time.Millisecond {
		t.Errorf("first wait after Reset: got %s, want at most 100ms", got)
	}
}

func TestBackoff_InitialAboveTheCapIsCapped(t *testing.T) {
	t.Parallel()
	b := Backoff{Initial: time.Minute, Max: time.Second}
	if got := b.Next(); got > time.Second {
		t.Errorf("got %s, want at most 1s", got)
	}
}

func TestBackoff_WaitEndsWithTheCauseOfItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("lease lost")
		ctx, cancel := context.WithCancelCause(t.Context())
		b := Backoff{Initial: time.Hour, Max: time.Hour}
		time.AfterFunc(time.Second, func() { cancel(cause) })
		began := time.Now()
		if err := b.Wait(ctx); !errors.Is(err, cause) {
			t.Errorf("got %v, want %v", err, cause)
		}
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("waited %s, want 1s", waited)
		}
	})
}
