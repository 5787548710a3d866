package delivery

import (
	"context"
	"sync"
	"time"
)

// How the list of halted aggregates is kept.
const (
	// readEvery is how often the list is read.
	readEvery = time.Second
	// trustTime is how long a list is good for, from before it was asked for.
	trustTime = 3 * time.Second
	// maxListed bounds the list. With more aggregates halted there is none, and
	// each one is looked up.
	maxListed = 1000
)

// HaltID names one halt of an aggregate, from its storing to its lifting. An
// aggregate that is halted again has another one.
type HaltID string

// HaltedAggregates is where halts are stored.
type HaltedAggregates interface {
	// List returns the halts of the halted aggregates, up to limit of them.
	List(ctx context.Context, limit int) (map[string]HaltID, error)
	// Halted returns an aggregate's halt; "" where it is not halted.
	Halted(ctx context.Context, aggregate string) (HaltID, error)
}

// Halts tells which aggregates are halted without asking the store each time.
type Halts struct {
	store HaltedAggregates

	mu     sync.Mutex
	listed map[string]known // guarded by mu: the halted aggregates
	asOf   time.Time        // guarded by mu: before the list was asked for; zero without a list to trust
	halted int              // guarded by mu: how many are listed, maxListed+1 for more; -1 until known
}

// known is a halt, and a moment at which it was stored already.
type known struct {
	halt  HaltID
	since time.Time
}

// NewHalts returns a view of the store. Until Run works each aggregate is looked up.
func NewHalts(store HaltedAggregates) *Halts {
	return &Halts{store: store, listed: map[string]known{}, halted: -1}
}

// Run keeps the list until ctx ends.
func (h *Halts) Run(ctx context.Context) error {
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	for {
		h.read(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// read reads the list. When that fails the last list ages and is not trusted
// any more; whoever then looks an aggregate up meets the error.
func (h *Halts) read(ctx context.Context) {
	asked := time.Now()
	attempt, cancel := context.WithTimeout(ctx, trustTime)
	defer cancel()
	aggregates, err := h.store.List(attempt, maxListed+1)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.listed
	h.listed = make(map[string]known, len(aggregates))
	for aggregate, halt := range aggregates {
		h.listed[aggregate] = knownFrom(before, aggregate, halt)
	}
	h.asOf, h.halted = asked, len(aggregates)
	if len(aggregates) > maxListed {
		h.asOf = time.Time{}
	}
}

// Halted tells whether an aggregate is halted.
func (h *Halts) Halted(ctx context.Context, aggregate string) (bool, error) {
	var halt HaltID
	var err error
	if !h.surelyNot(aggregate) {
		// Listed, or no list to trust; and a halt may have been lifted since.
		halt, err = h.store.Halted(ctx, aggregate)
	}
	if err == nil && halt != "" {
		h.add(aggregate, halt)
	}
	return halt != "", err
}

func (h *Halts) surelyNot(aggregate string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, listed := h.listed[aggregate]
	return !listed && time.Since(h.asOf) < trustTime
}

// add notes that an aggregate's halt is stored by now.
func (h *Halts) add(aggregate string, halt HaltID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listed[aggregate] = knownFrom(h.listed, aggregate, halt)
}

// knownFrom is since when a halt is known: this one, and no earlier halt of the
// same aggregate, which other replicas' lists may say is lifted.
func knownFrom(listed map[string]known, aggregate string, halt HaltID) known {
	k := listed[aggregate]
	if k.halt != halt {
		k = known{halt, time.Now()}
	}
	return k
}

// settle waits until every list that any replica still trusts names the
// aggregate: a list is trusted for trustTime from before it was asked for.
func (h *Halts) settle(ctx context.Context, aggregate string) error {
	h.mu.Lock()
	k, listed := h.listed[aggregate]
	h.mu.Unlock()
	if !listed {
		k.since = time.Now()
	}
	return until(ctx, k.since.Add(trustTime))
}

// awaitLists waits until every list of halts that a replica trusts was asked for
// later than now.
func awaitLists(ctx context.Context) error { return until(ctx, time.Now().Add(trustTime)) }

// until waits until a moment.
func until(ctx context.Context, moment time.Time) error {
	timer := time.NewTimer(time.Until(moment))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Count is how many aggregates are halted as of the last list, at most one more
// than the list can hold; false until the first list was read.
func (h *Halts) Count() (int, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.halted, h.halted >= 0
}
