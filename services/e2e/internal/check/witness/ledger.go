package witness

import (
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"time"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/orders"
)

// Ledger keeps count of what was written and how far each read document has
// come, so that anyone can ask how much is under way. Its methods are safe for
// concurrent use.
type Ledger struct {
	mu         sync.Mutex // guards what follows
	aggregates map[string]*progress
	names      []string // of aggregates of which events were written
	written    int
	applied    int
	batches    []acknowledged
	delays     []time.Duration
}

// progress is how far one aggregate has come.
type progress struct {
	versions []int64 // written, rising
	batches  []int32 // which batch each version was in
	reached  int64   // the version that its read document says it has
	seen     bool    // there is a read document that says so
	counted  int64   // how many events its read document counts
	applied  int     // how many of versions the read document has
}

// acknowledged is one batch that the source took.
type acknowledged struct {
	at     time.Time
	events int
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger { return &Ledger{aggregates: make(map[string]*progress)} }

// Wrote notes a batch that the source acknowledged.
func (l *Ledger) Wrote(events []orders.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batches = append(l.batches, acknowledged{time.Now(), len(events)})
	for _, e := range events {
		p := l.of(e.Aggregate)
		if p.versions == nil {
			l.names = append(l.names, e.Aggregate)
		}
		p.versions = append(p.versions, e.Version)
		p.batches = append(p.batches, int32(len(l.batches)-1))
		l.recount(p)
	}
	l.written += len(events)
}

// SawApply notes that a read document says it has come to a version, for read
// models in which nothing counts events. That may be seen before the source's
// acknowledgement is.
func (l *Ledger) SawApply(a validate.Apply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.of(a.Document)
	p.reached, p.seen = a.Version, true
	l.recount(p)
}

// SawCount notes how many events of its aggregate a read document counts. That
// may be seen before the source's acknowledgement is.
func (l *Ledger) SawCount(document string, events int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.of(document)
	p.counted = events
	l.recount(p)
}

// of returns an aggregate's progress. The caller holds mu.
func (l *Ledger) of(aggregate string) *progress {
	p := l.aggregates[aggregate]
	if p == nil {
		p = &progress{}
		l.aggregates[aggregate] = p
	}
	return p
}

// recount counts anew what of an aggregate is applied. The caller holds mu.
func (l *Ledger) recount(p *progress) {
	now := min(int(p.counted), len(p.versions))
	if p.seen {
		now = sort.Search(len(p.versions), func(i int) bool { return p.versions[i] > p.reached })
	}
	for i := p.applied; i < now; i++ {
		l.delays = append(l.delays, time.Since(l.batches[p.batches[i]].at))
	}
	l.applied += now - p.applied
	p.applied = now
}

// WrittenAt is when the source acknowledged an event; false where it did not.
func (l *Ledger) WrittenAt(aggregate string, version int64) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.aggregates[aggregate]
	if p == nil {
		return time.Time{}, false
	}
	i, found := slices.BinarySearch(p.versions, version)
	if !found {
		return time.Time{}, false
	}
	return l.batches[p.batches[i]].at, true
}

// Some are about n aggregates of which events were written, drawn; fewer where there are
// fewer.
func (l *Ledger) Some(rng *rand.Rand, n int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var some []string
	for range min(n, len(l.names)) {
		some = append(some, l.names[rng.IntN(len(l.names))])
	}
	slices.Sort(some)
	return slices.Compact(some)
}

// before yields the events that the source acknowledged before a time, and that are
// selected.
func (l *Ledger) before(at time.Time, selected func(validate.Event) bool, yield func(validate.Event) bool) {
	var events []validate.Event
	l.mu.Lock()
	for aggregate, p := range l.aggregates {
		for i, version := range p.versions {
			e := validate.Event{Aggregate: aggregate, Version: version}
			if l.batches[p.batches[i]].at.Before(at) && selected(e) {
				events = append(events, e)
			}
		}
	}
	l.mu.Unlock()
	for _, e := range events {
		if !yield(e) {
			return
		}
	}
}

// Counts returns how many events are written and how many of them applied.
func (l *Ledger) Counts() (written, applied int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.written, l.applied
}

// Aggregates returns how many aggregates events were written of.
func (l *Ledger) Aggregates() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, p := range l.aggregates {
		n += min(len(p.versions), 1)
	}
	return n
}

// WrittenBetween counts the events acknowledged in that time.
func (l *Ledger) WrittenBetween(from, to time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, b := range l.batches {
		if !b.at.Before(from) && !b.at.After(to) {
			n += b.events
		}
	}
	return n
}

// Delays returns, for every event that was seen in the read model, how long after
// the source's acknowledgement that was.
func (l *Ledger) Delays() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]time.Duration(nil), l.delays...)
}
