package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	mongodriver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
)

const (
	// readPause is the time between two looks of a reader.
	readPause = 50 * time.Millisecond
	// followed is how many documents a reader looks at.
	followed = 200
	// tailKept is how many events a document of shadow.yaml names.
	tailKept = 64
)

// reader looks at the documents of a view again and again, as an application does. What
// it sees must be what the events of an aggregate make up to some event, and never less
// than it has seen before: whatever is built anew, and switched to, meanwhile.
type reader struct {
	view *mongodriver.Collection
	seen map[string]int64 // versions
}

// read is a reader of the view whose documents nothing erases, until ctx ends.
func (c *campaign) read(ctx context.Context) {
	majority := options.Collection().SetReadConcern(readconcern.Majority())
	r := reader{view: c.witness.ReadModel().Collection(witness.Mended, majority), seen: make(map[string]int64)}
	rng := rand.New(rand.NewPCG(c.cfg.Seed, 0x72656164))
	for n := 0; sleepUntil(ctx, time.Now().Add(readPause)); n++ {
		if len(r.seen) < followed && n%10 == 0 {
			for _, id := range c.witness.Ledger.Some(rng, followed/20) {
				if _, known := r.seen[id]; !known {
					r.seen[id] = 0
				}
			}
		}
		documents, err := r.look(ctx)
		if err != nil {
			continue // the servers suffer something
		}
		c.repairs.looked(&r, documents)
	}
}

// look reads the documents that the reader follows.
func (r *reader) look(ctx context.Context) (map[string]readDocument, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTime)
	defer cancel()
	ids := make(bson.A, 0, len(r.seen))
	for id := range r.seen {
		ids = append(ids, id)
	}
	cursor, err := r.view.Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}}, options.Find().SetBatchSize(2*followed))
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

// readDocument is what a reader sees of a document.
type readDocument struct {
	ID     string  `bson:"_id"`
	Events int64   `bson:"events"`
	Sum    int64   `bson:"sum"`
	Tail   []int64 `bson:"tail"`
	Relay  struct {
		Version int64 `bson:"aggregateVersion"`
	} `bson:"_relay"`
}

// whole says whether a document is what the first events of its aggregate make, whose
// versions are 1 and up.
func (d *readDocument) whole() bool {
	n := d.Relay.Version
	if d.Events != n || d.Sum != n*(n+1)/2 || int64(len(d.Tail)) != min(n, tailKept) {
		return false
	}
	for i, version := range d.Tail {
		if version != n-int64(len(d.Tail))+int64(i)+1 {
			return false
		}
	}
	return true
}

// looked judges what a reader sees, but for documents that somebody has damaged.
func (r *repairs) looked(by *reader, documents map[string]readDocument) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	r.seen = r.seen.And(by.judge(documents, func(id string) bool { return r.touched[document{witness.Mended, id}] }))
}

// judge finds what is neither old nor new, and goes on from what it sees.
func (r *reader) judge(documents map[string]readDocument, damaged func(id string) bool) validate.Findings {
	var f validate.Findings
	for id, before := range r.seen {
		now, there := documents[id]
		switch {
		case damaged(id):
			delete(r.seen, id)
			continue
		case !there && before > 0:
			f.Add("%s is gone, which was at version %d", id, before)
		case there && now.Relay.Version < before:
			f.Add("%s is at version %d, and was at %d", id, now.Relay.Version, before)
		case there && !now.whole():
			f.Add("%s is at version %d, with %s", id, now.Relay.Version, fmt.Sprintf("%d events, sum %d, tail %v", now.Events, now.Sum, now.Tail))
		}
		r.seen[id] = max(before, now.Relay.Version)
	}
	return f
}
