package engine

import (
	"context"

	"github.com/google/uuid"
	"github.com/tidwall/btree"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// Tail reads a capped collection in the order of insertion, and goes on with
// what is stored later. It is used by one goroutine at a time.
type Tail struct {
	engine *Engine
	ns     oplog.Namespace
	uuid   uuid.UUID
	filter *match.Filter
	// last is the record that was looked at last.
	last int64
	// records walks over the snapshot that is being read, if reading is set.
	records btree.MapIter[int64, storage.Record]
	reading bool
	// end is the end of the oplog before the snapshot was taken.
	end uint64
}

// Tail opens a tail of a capped collection. One that is not there has none: it
// returns nil.
func (e *Engine) Tail(ns oplog.Namespace, filter *match.Filter) (*Tail, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	coll := e.collections[ns]
	if coll == nil {
		return nil, nil
	}
	if coll.options.Capped == nil {
		return nil, mongoerr.New(mongoerr.BadValue, "error processing query: ns=%s tailable cursor requested on non capped collection", ns)
	}
	return &Tail{engine: e, ns: ns, uuid: coll.uuid, filter: filter}, nil
}

// Next gives the next document, nil when there is none at present.
func (t *Tail) Next() (bson.Raw, error) {
	if !t.reading {
		if err := t.look(); err != nil {
			return nil, err
		}
	}
	for t.records.Next() {
		t.last = t.records.Key()
		doc := t.records.Value().Doc
		matches, err := t.filter.Match(doc)
		if err != nil {
			return nil, err
		}
		if matches {
			return doc, nil
		}
	}
	t.reading = false
	return nil, nil
}

// look takes a new snapshot and goes to the record that was looked at last.
func (t *Tail) look() error {
	t.end, _ = t.engine.oplog.Applied()
	t.engine.mu.Lock()
	defer t.engine.mu.Unlock()
	coll := t.engine.collections[t.ns]
	if coll == nil || coll.uuid != t.uuid {
		return mongoerr.New(mongoerr.QueryPlanKilled, "collection dropped. UUID %s", t.uuid)
	}
	t.records = coll.snapshot().Records.Iter()
	if t.last > 0 && (!t.records.Seek(t.last) || t.records.Key() != t.last) {
		return mongoerr.New(mongoerr.CappedPositionLost,
			"CollectionScan died due to position in capped collection being deleted. Last seen record id: RecordId(%d)", t.last)
	}
	t.reading = true
	return nil
}

// Wait returns when there may be more, or ctx ends.
func (t *Tail) Wait(ctx context.Context) error { return t.engine.oplog.WaitApplied(ctx, t.end) }

// Empty reports that no document has been looked at.
func (t *Tail) Empty() bool { return t.last == 0 }
