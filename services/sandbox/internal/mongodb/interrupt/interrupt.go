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
	// atEnd is what is to be done when the command ends.
	atEnd []func()
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
	return i.End
}

// End is to be called when the first command has ended.
func (i *Context) End() {
	i.mu.Lock()
	all := i.atEnd
	i.now, i.atEnd = context.Background(), nil
	i.mu.Unlock()
	for _, f := range all {
		f()
	}
}

// AtEnd has f called when the present command ends.
func (i *Context) AtEnd(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.atEnd = append(i.atEnd, f)
}

// Present is the context of the present command.
func (i *Context) Present() context.Context {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.now
}

// Deadline is that of the present context.
func (i *Context) Deadline() (time.Time, bool) { return i.Present().Deadline() }

// Done is that of the present context.
func (i *Context) Done() <-chan struct{} { return i.Present().Done() }

// Err is that of the present context.
func (i *Context) Err() error { return i.Present().Err() }

// Value is that of the present context.
func (i *Context) Value(key any) any { return i.Present().Value(key) }

// Interrupted is why the command is to end, nil for none.
func (i *Context) Interrupted() error {
	now := i.Present()
	if now.Err() == nil {
		return nil
	}
	return context.Cause(now)
}
