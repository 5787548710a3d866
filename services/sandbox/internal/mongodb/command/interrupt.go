package command

import (
	"context"
	"sync"
	"time"
)

// interruptible is the context of what reads for a cursor: that of the command
// that uses the cursor at present. A source is made once and read by many
// commands, each with a time limit and a client of its own.
type interruptible struct {
	mu  sync.Mutex
	now context.Context //nolint:containedctx // it stands for the command under way
}

// withInterruptible makes a command's context one that outlives it, for the
// source that it may open.
func withInterruptible(ctx context.Context) (context.Context, *interruptible) {
	i := &interruptible{now: ctx}
	return i, i
}

// Enter makes a command's context the one that is asked. The function it
// returns is to be called when the command has ended.
func (i *interruptible) Enter(ctx context.Context) (leave func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.now = ctx
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.now = context.Background()
	}
}

func (i *interruptible) present() context.Context {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.now
}

// Deadline, Done, Err and Value are those of the present context.
func (i *interruptible) Deadline() (time.Time, bool) { return i.present().Deadline() }
func (i *interruptible) Done() <-chan struct{}       { return i.present().Done() }
func (i *interruptible) Err() error                  { return i.present().Err() }
func (i *interruptible) Value(key any) any           { return i.present().Value(key) }

// interrupted is why the command is to end, nil for none.
func (i *interruptible) interrupted() error {
	now := i.present()
	if now.Err() == nil {
		return nil
	}
	return context.Cause(now)
}
