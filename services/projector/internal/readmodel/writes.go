package readmodel

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/majority"
	"changerelay/services/projector/internal/readmodel/reply"
)

// Writes are the read documents, and the ledger of positions in applied_positions.
type Writes struct {
	*database
	parking *Parking
	sources *sources
	// suspects are documents that may show that positions are lost.
	suspects *suspects
	// witnessed are documents that may show that read collections were emptied.
	witnessed *witnessed

	mu      sync.Mutex
	commits map[string]*groupCommit // by collection; guarded by mu
}

var _ delivery.Store = (*Writes)(nil)

func newWrites(d *database, parking *Parking) *Writes {
	return &Writes{
		database:  d,
		parking:   parking,
		sources:   &sources{notes: d.own(projection.Positions)},
		suspects:  &suspects{found: map[string]suspect{}},
		witnessed: &witnessed{of: map[string]knownWitnesses{}},
		commits:   map[string]*groupCommit{},
	}
}

// Write implements delivery.Store. What goes to one collection, guarded by its
// documents, goes by itself, unless it depends on what they are, or an event is skipped, or may have
// been; all else goes together: see transaction.
func (s *Writes) Write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	outcomes, err := s.write(ctx, writes)
	// So ends a write without a transaction that waits for one.
	if reply.Has(err, maxTimeExpired) && s.looks.due() {
		s.endIdle(ctx)
	}
	if reply.IsUnreachable(err) {
		err = reply.Unreachable(majority.Explain(ctx, s.db.Client(), err))
	}
	return outcomes, err
}

func (s *Writes) write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	if err := s.noteHoles(ctx, writes); err != nil {
		return nil, err
	}
	outcomes, all := make([]delivery.Outcome, len(writes)), make([]int, len(writes))
	for i := range all {
		all[i] = i
	}
	reads := slices.ContainsFunc(writes, func(w projection.Write) bool { return w.Complete != nil })
	if to := collections(writes, all); !reads && !skips(writes) && !mends(writes) && len(to) == 1 && len(positionKeys(writes, all)) == 0 {
		p := &bulkWriter{store: s, collection: s.db.Collection(to[0]), writes: writes, outcomes: outcomes, pending: all, scope: adjacent}
		return outcomes, p.run(ctx)
	}
	p := &transaction{store: s, writes: writes, outcomes: outcomes, pending: all, scope: anywhere}
	return outcomes, p.run(ctx)
}

// commit is where writes of single documents of a collection are sent together.
func (s *Writes) commit(to *mongo.Collection) *groupCommit {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.commits[to.Name()]
	if c == nil {
		c = &groupCommit{send: func(ctx context.Context, models []mongo.WriteModel) error {
			return s.bulk(ctx, to, models, false)
		}}
		s.commits[to.Name()] = c
	}
	return c
}

// bulk sends writes in one command. Where they are ordered, none is tried behind one that
// is refused.
func (s *Writes) bulk(ctx context.Context, to *mongo.Collection, models []mongo.WriteModel, ordered bool) error {
	began := time.Now()
	result, err := to.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(ordered))
	s.witnessed.inserted(to.Name(), began, result)
	return err
}
