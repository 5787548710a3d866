package watch

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/e2e/internal/check/validate"
)

// bookkeeping is the field under which a read document says which event it has
// come to.
const bookkeeping = "_relay"

// Applies is the history of writes to a read model. Its methods are safe for
// concurrent use.
type Applies struct {
	run func(context.Context) error

	mu      sync.Mutex // guards what follows
	history []validate.Apply
	each    func(validate.Apply)
}

// OpenApplies begins to watch the collection; writes before the call are not
// seen. each is called for every write, in order.
func OpenApplies(ctx context.Context, collection *mongo.Collection, each func(validate.Apply)) (*Applies, error) {
	a := &Applies{each: each}
	run, err := follow(ctx, collection, a.add)
	if err != nil {
		return nil, err
	}
	a.run = run
	return a, nil
}

// Run gathers writes until ctx ends.
func (a *Applies) Run(ctx context.Context) error { return a.run(ctx) }

func (a *Applies) add(c change) {
	n, ok := c.reached()
	if !ok {
		return
	}
	apply := validate.Apply{Document: c.id(), Version: n}
	if hold, found := c.field(bookkeeping, "by"); found {
		apply.Hold, _ = hold.StringValueOK()
	}
	a.mu.Lock()
	a.history = append(a.history, apply)
	a.mu.Unlock()
	a.each(apply)
}

// reached is the version that a write brought a document to; of events that have none
// the cluster time with which their sequence begins.
func (c change) reached() (int64, bool) {
	if version, found := c.field(bookkeeping, "aggregateVersion"); found {
		return version.AsInt64OK()
	}
	field, _ := c.field(bookkeeping, "sequence")
	sequence, _ := field.StringValueOK()
	stamp, _, isPosition := strings.Cut(sequence, ".")
	if !isPosition {
		return 0, false
	}
	at, err := strconv.ParseInt(stamp, 16, 64)
	return at, err == nil
}

// History returns the writes so far.
func (a *Applies) History() []validate.Apply {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]validate.Apply(nil), a.history...)
}
