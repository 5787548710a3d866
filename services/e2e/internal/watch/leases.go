package watch

import (
	"context"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/e2e/internal/validate"
)

// Leases is the history of the publishers' leases. Its methods are safe for
// concurrent use.
type Leases struct {
	run func(context.Context) error

	mu      sync.Mutex // guards what follows
	last    map[string]validate.Holding
	history []validate.Holding
}

// OpenLeases begins to watch the collection of leases; writes before the call
// are not seen.
func OpenLeases(ctx context.Context, collection *mongo.Collection) (*Leases, error) {
	l := &Leases{last: make(map[string]validate.Holding)}
	run, err := follow(ctx, collection, l.add)
	if err != nil {
		return nil, err
	}
	l.run = run
	return l, nil
}

// Run gathers writes until ctx ends.
func (l *Leases) Run(ctx context.Context) error { return l.run(ctx) }

// add notes a write. A field that a write leaves alone keeps its value.
func (l *Leases) add(w change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	state := l.last[w.id()]
	state.Lease = w.id()
	if v, found := w.field("", "leaderId"); found {
		state.Leader, _ = v.StringValueOK()
	}
	if v, found := w.field("", "incarnation"); found {
		state.Incarnation, _ = v.StringValueOK()
	}
	if v, found := w.field("", "heartbeatAt"); found {
		ms, _ := v.DateTimeOK()
		state.From = time.UnixMilli(ms)
	}
	if v, found := w.field("", "expiresAt"); found {
		ms, _ := v.DateTimeOK()
		state.Until = time.UnixMilli(ms)
	}
	l.last[w.id()] = state
	l.history = append(l.history, state)
}

// History returns the leases' states so far, oldest first.
func (l *Leases) History() []validate.Holding {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]validate.Holding(nil), l.history...)
}
