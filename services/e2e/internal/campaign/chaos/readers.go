package chaos

import (
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	mongodriver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/source"
)

const (
	// readPause is the time between two looks of a reader.
	readPause = 50 * time.Millisecond
	// followed is how many documents a reader looks at.
	followed = 200
)

// reader looks at the documents of a view again and again, as an application does. What
// it sees must be what events make up to some event, and never less than it has seen
// before: whatever is built anew, and switched to, meanwhile.
type reader struct {
	visible
	view   *mongodriver.Collection
	seen   map[string]observation
	erased []erasure // that explain what it has seen
}

// read is a reader of the view that is built anew, until ctx ends.
func (c *campaign) read(ctx context.Context) {
	majority := options.Collection().SetReadConcern(readconcern.Majority())
	view := c.rebuilt()
	r := reader{visible: observable[view], view: c.witness.ReadModel().Collection(view, majority), seen: make(map[string]observation)}
	rng := rand.New(rand.NewPCG(c.cfg.Seed, 0x72656164))
	for n := 0; sleepUntil(ctx, time.Now().Add(readPause)); n++ {
		if len(r.seen) < followed && n%10 == 0 {
			for _, id := range c.some(ctx, &r, rng) {
				if _, known := r.seen[id]; !known {
					r.seen[id] = observation{}
				}
			}
		}
		documents, err := r.look(ctx)
		if err != nil {
			continue // the servers suffer something
		}
		c.repairs.looked(view, &r, documents)
	}
}

// some are ids of documents that a reader may follow: those of aggregates, or of documents
// that there are where they have another key.
func (c *campaign) some(ctx context.Context, r *reader, rng *rand.Rand) []string {
	if !r.keyed {
		return c.witness.Ledger.Some(rng, followed/20)
	}
	documents, err := r.find(ctx, bson.D{}, options.Find().SetLimit(followed))
	if err != nil {
		return nil // the servers suffer something
	}
	return slices.Sorted(maps.Keys(documents))
}

// look reads the documents that the reader follows.
func (r *reader) look(ctx context.Context) (map[string]readDocument, error) {
	ids := make(bson.A, 0, len(r.seen))
	for id := range r.seen {
		ids = append(ids, id)
	}
	return r.find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}}, options.Find().SetBatchSize(2*followed))
}

// find reads documents of the view.
func (r *reader) find(ctx context.Context, filter bson.D, how *options.FindOptionsBuilder) (map[string]readDocument, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTime)
	defer cancel()
	cursor, err := r.view.Find(ctx, filter, how)
	if err != nil {
		return nil, err
	}
	var all []readDocument
	if err := cursor.All(ctx, &all); err != nil {
		return nil, err
	}
	documents := make(map[string]readDocument, len(all))
	for i := range all {
		documents[all[i].ID] = all[i]
	}
	return documents, nil
}

// looked judges what a reader sees of a view, but for documents that somebody has damaged.
func (r *repairs) looked(view string, by *reader, documents map[string]readDocument) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(documents) > 0 {
		r.reads++
		if r.begun[view] {
			r.readsAnew++
		}
	}
	r.seen = r.seen.And(by.judge(documents, func(id string) bool { return r.touched[document{view, id}] }))
	r.erased = by.erased
}

// judge finds what is neither old nor new, and goes on from what it sees.
func (r *reader) judge(documents map[string]readDocument, damaged func(id string) bool) validate.Findings {
	var f validate.Findings
	for id, before := range r.seen {
		if damaged(id) {
			delete(r.seen, id)
			continue
		}
		now, there := documents[id]
		switch {
		case !there && before.there && r.erases:
			r.erased = append(r.erased, erasure{id, r.reached(&before.readDocument) + 1, math.MaxInt64})
			r.seen[id] = observation{before.readDocument, false}
		case !there && before.there:
			f.Add("%s is gone, which was at %d", id, r.reached(&before.readDocument))
		case !there:
		case r.reached(&now) < r.reached(&before.readDocument):
			f.Add("%s is at %d, and was at %d", id, r.reached(&now), r.reached(&before.readDocument))
		case !r.follows(before, &now):
			f.Add("%s was %+v, and is %+v", id, before, now)
		default:
			if r.erases && now.erasedAt() > 0 && now.erasedAt() != before.erasedAt() {
				r.erased = append(r.erased, erasure{id, now.erasedAt(), now.erasedAt()})
			}
			r.seen[id] = observation{now, true}
		}
	}
	return f
}

// erasures are the versions of the events that erase documents, of each aggregate.
func (c *campaign) erasures(ctx context.Context) (map[string][]int64, error) {
	versions, names := make(map[string][]int64), c.cluster.Names()
	return versions, source.Each(ctx, c.witness.Client, names.SourceDatabase, names.SourceCollection, func(e source.Stored) error {
		if e.Type == orders.Erased {
			versions[e.Aggregate] = append(versions[e.Aggregate], e.Version)
		}
		return nil
	})
}

// unexplained finds documents that readers saw erased, or begun anew, where no event has
// done that.
func unexplained(erased []erasure, versions map[string][]int64) (f validate.Findings) {
	for _, e := range erased {
		if !slices.ContainsFunc(versions[e.id], e.explainedBy) {
			f.Add("readers saw %s erased by an event of version %d to %d, and there is none", e.id, e.from, e.to)
		}
	}
	return f
}
