package demo

import (
	"context"
	"errors"
	"io"
	"testing"
)

// Whoever presses Ctrl-C reads that it was that, and not what broke off because of it.
func TestDemo_SaysThatItWasStopped(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("interrupt signal received"))
	r, err := New(Config{Dir: t.TempDir()}, io.Discard).Run(ctx)
	if want := "stopped before the end (interrupt signal received), so nothing is judged"; err == nil || r.Stopped != want || r.Passed {
		t.Errorf("got %v, and in the report %q, want %q", err, r.Stopped, want)
	}
}
