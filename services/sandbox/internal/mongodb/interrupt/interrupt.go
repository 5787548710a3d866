// Package interrupt lets what many commands read, one after another, end with the
// one that reads it.
package interrupt

import (
	"context"
	"sync"
	"time"
)

// Context is the context of what reads for a cursor: that of the command
// that uses the cursor at present. A source is made once and read by many
// commands, each with a time limit and a client of its own.
type Context struct {
	mu  sync.Mutex
	now context.Context //nolint:containedctx // it stands for the command under way
}

// New makes a command's context one that outlives it, for the
// source that it may open.
func New(ctx context.Context) (context.Context, *Context) {
	i := &Context{now: ctx}
	return i, i
}

// Enter makes a command's context the one that is asked. The function it
// returns is to be called when the command has ended.
func (i *Context) Enter(ctx context.Context) (leave func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.now = ctx
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.now = context.Background()
	}
}

func (i *Context) present() context.Context {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.now
}

// Deadline is that of the present context.
func (i *Context) Deadline() (time.Time, bool) { return i.present().Deadline() }

// Done is that of the present context.
func (i *Context) Done() <-chan struct{} { return i.present().Done() }

// Err is that of the present context.
func (i *Context) Err() error { return i.present().Err() }

// Value is that of the present context.
func (i *Context) Value(key any) any { return i.present().Value(key) }

// Interrupted is why the command is to end, nil for none.
func (i *Context) Interrupted() error {
	now := i.present()
	if now.Err() == nil {
		return nil
	}
	return context.Cause(now)
}
