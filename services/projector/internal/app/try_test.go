package app_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"changerelay/services/projector/internal/command"
)

var errSignal = errors.New("a signal")

// A try that waits for its event, as from another program, ends with a signal.
func TestTry_EndsWhileItWaitsForItsEvent(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "event.json")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := command.Program("test").Do(ctx, []string{"try", file(t, "p.yaml", counting), "--event", pipe}, &bytes.Buffer{}, &bytes.Buffer{})
		ended <- err
	}()
	// Opening it returns when somebody has opened it to read.
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cancel(errSignal)
	if err := <-ended; !errors.Is(err, errSignal) {
		t.Errorf("got %v, want it ended by the signal", err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
}

// So does one that has many events, and one in the middle of an expression.
func TestTry_EndsInTheMiddle(t *testing.T) {
	t.Parallel()
	path := file(t, "p.yaml", "projections: [{name: p, collection: c, on: {Happened: {set: {v: 'count(1..1000, all(1..100, true))'}}}}]")
	events := file(t, "events.json", strings.Repeat(`{"type":"Happened"}`, 3))
	try := func(ctx context.Context, stdout io.Writer) error {
		_, err := command.Program("test").Do(ctx, []string{"try", path, "--event", events}, stdout, &bytes.Buffer{})
		return err
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stdout := &cancelling{cancel: func() { cancel(errSignal) }}
	if err := try(ctx, stdout); !errors.Is(err, errSignal) || stdout.lines != 1 {
		t.Errorf("with a signal after the first event: got %v after %d lines", err, stdout.lines)
	}
	stdout = &cancelling{cancel: func() {}}
	if err := try(&ending{Context: t.Context(), looks: 20}, stdout); !errors.Is(err, context.Canceled) || stdout.lines != 0 {
		t.Errorf("with a signal in the first expression: got %v after %d lines", err, stdout.lines)
	}
	if err := try(t.Context(), stdout); err != nil || stdout.lines != 3 {
		t.Errorf("without a signal: got %v after %d lines", err, stdout.lines)
	}
}

// ending is a context that has ended when it was looked at that many times.
type ending struct {
	context.Context
	looks int
}

func (e *ending) Err() error {
	if e.looks--; e.looks < 0 {
		return context.Canceled
	}
	return nil
}

// cancelling is an output at whose lines a signal comes.
type cancelling struct {
	cancel func()
	lines  int
}

func (c *cancelling) Write(line []byte) (int, error) {
	c.lines++
	c.cancel()
	return len(line), nil
}
