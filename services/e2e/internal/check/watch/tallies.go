package watch

import (
	"context"
	"maps"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/e2e/internal/check/validate"
)

// Fields of a document that counts the events of its aggregate. Only a shadow
// has the list of versions.
const (
	countedEvents = "events"
	latestApplied = "tail"
)

// Named is how many events a shadow document names, the latest ones. It is more than a
// projector applies at once: of a write that applies more, nobody would see those before.
const Named = 128

// Tallies watches documents that count their events, and gathers from each write
// which events it applied. Its methods are safe for concurrent use.
type Tallies struct {
	run func(context.Context) error

	mu    sync.Mutex // guards what follows
	of    map[string]validate.Tally
	moves int
	each  func(document string, events int64)
}

// OpenTallies begins to watch the collection; writes before the call are not
// seen. each is told of a document's count after every write, in order.
func OpenTallies(ctx context.Context, collection *mongo.Collection, each func(document string, events int64)) (*Tallies, error) {
	t := &Tallies{of: make(map[string]validate.Tally), each: each}
	run, err := follow(ctx, collection, t.add)
	if err != nil {
		return nil, err
	}
	t.run = run
	return t, nil
}

// Run gathers writes until ctx ends.
func (t *Tallies) Run(ctx context.Context) error { return t.run(ctx) }

func (t *Tallies) add(c change) {
	if operation, _ := c.raw.Lookup("operationType").StringValueOK(); operation == "delete" {
		t.forget(c.id())
		return
	}
	events, found := c.field("", countedEvents)
	if !found {
		return
	}
	count, ok := events.AsInt64OK()
	if !ok {
		return
	}
	t.mu.Lock()
	tally := t.of[c.id()]
	fresh := count - tally.Events
	if fresh < 0 { // another document was put in its place, of which nobody saw the writes
		tally, fresh = validate.Tally{Unseen: 1}, count
	}
	versions := c.pushed(latestApplied, fresh)
	for _, v := range versions {
		tally.Add(v)
	}
	tally.Unseen += fresh - int64(len(versions))
	tally.Events = count
	t.of[c.id()] = tally
	t.moves++
	t.mu.Unlock()
	t.each(c.id(), count)
}

// forget notes that a document is gone, which no event does to it: what another one in its
// place counts, nobody has seen.
func (t *Tallies) forget(document string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of[document] = validate.Tally{Unseen: 1}
	t.moves++
}

// pushed returns the last elements of an array, no more than n: those that a
// write appended.
func (c change) pushed(field string, n int64) []int64 {
	if n <= 0 {
		return nil
	}
	var all []int64
	if whole, found := c.field("", field); found {
		all = integers(whole)
	} else {
		all = c.appended(field)
	}
	return all[max(0, int64(len(all))-n):]
}

// appended returns what an update put behind the elements that an array had; it
// names each by its place.
func (c change) appended(field string) []int64 {
	updated, ok := c.raw.Lookup("updateDescription", "updatedFields").DocumentOK()
	if !ok {
		return nil
	}
	fields, err := updated.Elements()
	if err != nil {
		return nil
	}
	var all []int64
	for _, f := range fields {
		if key := f.Key(); len(key) > len(field)+1 && key[:len(field)+1] == field+"." {
			if v, ok := Mark(f.Value()); ok {
				all = append(all, v)
			}
		}
	}
	return all
}

func integers(v bson.RawValue) []int64 {
	array, ok := v.ArrayOK()
	if !ok {
		return nil
	}
	values, err := array.Values()
	if err != nil {
		return nil
	}
	all := make([]int64, 0, len(values))
	for _, v := range values {
		if n, ok := Mark(v); ok {
			all = append(all, n)
		}
	}
	return all
}

// Mark is the number that stands for an event: its version, or the fingerprint of its
// sequence.
func Mark(v bson.RawValue) (int64, bool) {
	if text, ok := v.StringValueOK(); ok {
		return validate.Fingerprint(text), true
	}
	return v.AsInt64OK()
}

// Tallies returns the tallies so far, by document. What was applied unseen is
// missing from their sums.
func (t *Tallies) Tallies() map[string]validate.Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.of)
}

// Writes is how many writes were seen.
func (t *Tallies) Writes() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.moves
}
