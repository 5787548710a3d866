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
	last    map[string]validate.Apply
	history []validate.Apply
	each    func(validate.Apply)
}

// OpenApplies begins to watch the collection; writes before the call are not
// seen. each is called for every write, in order.
func OpenApplies(ctx context.Context, collection *mongo.Collection, each func(validate.Apply)) (*Applies, error) {
	a := newApplies(each)
	run, err := follow(ctx, collection, a.add)
	if err != nil {
		return nil, err
	}
	a.run = run
	return a, nil
}

func newApplies(each func(validate.Apply)) *Applies {
	return &Applies{each: each, last: make(map[string]validate.Apply)}
}

// Run gathers writes until ctx ends.
func (a *Applies) Run(ctx context.Context) error { return a.run(ctx) }

func (a *Applies) add(c change) {
	a.mu.Lock()
	after, wrote := c.applied(a.last[c.id()])
	a.last[c.id()] = after
	if wrote {
		a.history = append(a.history, after)
	}
	a.mu.Unlock()
	if wrote {
		a.each(after)
	}
}

// applied is the apply that a write leaves in a document, and whether it is one. Of an
// update a change stream names what has another value than before: a hold that writes
// twice is named once, and one event that is applied twice shows by when that was.
func (c change) applied(before validate.Apply) (after validate.Apply, wrote bool) {
	after = validate.Apply{Document: c.id(), At: c.at()}
	if c.keeps(bookkeeping) {
		after.Version, after.Hold = before.Version, before.Hold
	}
	_, again := c.field(bookkeeping, "updatedAt")
	n, reached := c.reached()
	if reached {
		after.Version = n
	}
	if hold, found := c.field(bookkeeping, "by"); found {
		after.Hold, _ = hold.StringValueOK()
	}
	return after, (reached || again) && after.Version > 0
}

// at is when the write was made, on the server's clock, in seconds since 1970.
func (c change) at() int64 {
	seconds, _, _ := c.raw.Lookup("clusterTime").TimestampOK()
	return int64(seconds)
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
