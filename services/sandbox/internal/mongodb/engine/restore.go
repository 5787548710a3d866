package engine

import (
	"fmt"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
)

// restore does again what a journal has kept. It is for an engine that is to
// begin; records come in the order in which they were appended.
func (e *Engine) restore(record []byte) error {
	r := &decoder{rest: record}
	restored := restoration{engine: e}
	for len(r.rest) > 0 && r.err == nil {
		if err := restored.item(r); err != nil {
			return err
		}
	}
	return r.err
}

// Salvager returns a state machine for journal.Salvage: what it keeps is what an
// engine takes that is to begin. Documents at the beginning of a record are left
// out where it is not known what collection they are of, and where entries of the
// oplog may be lost the record is told to forget those before.
func Salvager() func(record []byte, behind bool) (kept []byte, why error) {
	e := newEngine(Config{})
	return func(record []byte, behind bool) ([]byte, error) {
		if behind {
			e.filling, e.gap = nil, true
		}
		kept, why := e.withoutStrays(record)
		gap := e.gap
		if err := e.restore(kept); err != nil {
			e.filling = nil
			return nil, err
		}
		if gap && !e.gap {
			w := &encoder{}
			w.counters(counters{cut: e.oplog.Stats().Cut})
			kept = append(w.buf, kept...)
		}
		return kept, why
	}
}

// withoutStrays leaves the documents out at the beginning of a record, a picture's,
// whose collection is not there; why is nil where there are none.
func (e *Engine) withoutStrays(record []byte) (rest []byte, why error) {
	r := &decoder{rest: record}
	name, documents := "a collection whose name is lost", 0
	known := e.filling != nil
	for rest = record; len(rest) > 0; rest = r.rest {
		switch kind := r.uint(); {
		case kind == itemContinue:
			id := r.id()
			name, known = fmt.Sprintf("the collection with the UUID %s, which is lost", id), e.collectionOf(id) != nil
		case kind == itemDocument && !known:
			r.uint()
			r.raw(r.uint())
			documents++
		default:
			known = true
		}
		if r.err != nil {
			return record, nil // restore says why
		}
		if known {
			break
		}
	}
	if documents == 0 {
		return record, nil
	}
	return rest, fmt.Errorf("%w: %d documents are of %s", errRecord, documents, name)
}

// collectionOf returns the collection with a UUID, nil for none.
func (e *Engine) collectionOf(id uuid.UUID) *collection {
	if e.filling != nil && e.filling.uuid == id {
		return e.filling
	}
	for _, coll := range e.collections {
		if coll.uuid == id {
			return coll
		}
	}
	return nil
}

// restoration carries what one item of a record means for the next.
type restoration struct{ engine *Engine }

func (s *restoration) item(r *decoder) error {
	e := s.engine
	switch kind := r.uint(); kind {
	case itemChange:
		c := r.change()
		if r.err != nil {
			return r.err
		}
		if err := e.redo(c); err != nil {
			return fmt.Errorf("redo %s on %s: %w", c.Operation, c.NS, err)
		}
		e.remember(c.Entry)
	case itemHistory:
		if entry := r.entry(); r.err == nil {
			e.remember(entry)
		}
	case itemOutcome:
		if o := r.outcome(); r.err == nil {
			e.keep(o)
			e.sessions.restore(e, o)
		}
	case itemCollection:
		return e.restoreCollection(r)
	case itemContinue:
		return e.continueCollection(r)
	case itemDocument:
		return e.restoreDocument(r)
	case itemCounters:
		e.restoreCounters(r.counters())
	default:
		return fmt.Errorf("%w: item of kind %d", errRecord, kind)
	}
	return r.err
}

// remember puts an entry into the oplog, and the clock forward to it. Behind a gap
// the oplog begins anew: with the entry, or behind the transaction that it is not the
// first of.
func (e *Engine) remember(entry oplog.Entry) {
	if e.gap {
		cut := entry.Time
		if entry.Index == 0 {
			cut--
		}
		e.oplog.Forgot(cut)
		e.gap = false
	}
	e.clock = max(e.clock, entry.Time)
	e.end = e.oplog.Append(entry)
	e.oplog.Advance(e.end)
}

func (e *Engine) restoreCounters(c counters) {
	e.clock, e.lastRecord = max(e.clock, c.clock), max(e.lastRecord, c.lastRecord)
	e.oplog.Forgot(c.cut)
	for _, db := range c.databases {
		e.databases[db] = true
	}
}

func (e *Engine) restoreCollection(r *decoder) error {
	ns, id := r.namespace(), r.id()
	options, listed := r.document(), r.documents()
	if r.err != nil {
		return r.err
	}
	coll, err := restoredCollection(ns, options)
	if err != nil {
		return err
	}
	coll.uuid = id
	e.install(coll)
	e.filling = coll
	return coll.table.AddListed(listed)
}

func (e *Engine) continueCollection(r *decoder) error {
	id := r.id()
	if r.err != nil {
		return r.err
	}
	if e.filling = e.collectionOf(id); e.filling == nil {
		return fmt.Errorf("%w: the collection with the UUID %s is not there", errRecord, id)
	}
	return nil
}

func restoredCollection(ns oplog.Namespace, listed bson.Raw) (*collection, error) {
	options, err := NewCollectionOptions(listed)
	if err != nil {
		return nil, err
	}
	return newCollection(ns, options), nil
}

// restoreDocument adds to the collection that came last. It keeps later records
// above this one by itself: a salvage may have lost the counters.
func (e *Engine) restoreDocument(r *decoder) error {
	id, doc := int64(r.uint()), r.document()
	if r.err != nil || e.filling == nil {
		return errRecord
	}
	e.lastRecord = max(e.lastRecord, id)
	return e.filling.table.Insert(id, doc, 0)
}

// redo makes a change again.
func (e *Engine) redo(c oplog.Change) error {
	switch c.Operation {
	case oplog.OpNoop, oplog.OpDropDatabase:
		if c.Operation == oplog.OpDropDatabase {
			delete(e.databases, c.NS.DB)
		}
		return nil
	case oplog.OpCreate:
		coll, err := restoredCollection(c.NS, firstOf(c.Listed))
		if err == nil {
			coll.uuid = c.UUID
			e.install(coll)
		}
		return err
	}
	coll := e.collections[c.NS]
	if coll == nil || coll.uuid != c.UUID {
		return fmt.Errorf("%w: the collection is not there", errRecord)
	}
	if c.ConcernsDocument() {
		return e.redoDocument(coll, c)
	}
	return e.redoCollection(coll, c)
}

func firstOf(docs []bson.Raw) bson.Raw {
	if len(docs) == 0 {
		return nil
	}
	return docs[0]
}

func (e *Engine) redoDocument(coll *collection, c oplog.Change) error {
	e.lastRecord = max(e.lastRecord, c.Record)
	before, there := coll.table.Records.Get(c.Record)
	if there == (c.Operation == oplog.OpInsert) {
		return fmt.Errorf("%w: record %d is there: %t", errRecord, c.Record, there)
	}
	switch c.Operation {
	case oplog.OpInsert:
		err := coll.table.Insert(c.Record, c.Doc, 0)
		coll.trim()
		return err
	case oplog.OpReplace:
		return coll.table.Replace(c.Record, before, c.Doc, 0)
	case oplog.OpUpdate:
		return coll.table.Replace(c.Record, before, c.Stored, 0)
	default:
		coll.table.Remove(c.Record, before)
		return nil
	}
}

func (e *Engine) redoCollection(coll *collection, c oplog.Change) error {
	switch c.Operation {
	case oplog.OpDrop:
		delete(e.collections, c.NS)
	case oplog.OpRename:
		delete(e.collections, c.NS)
		coll.ns = c.To
		e.install(coll)
	case oplog.OpCreateIndexes:
		return coll.table.AddListed(c.Listed)
	case oplog.OpDropIndexes:
		for _, name := range c.Names {
			if ix := coll.table.IndexNamed(name); ix != nil {
				coll.table.DropIndex(ix)
			}
		}
	case oplog.OpCollMod:
		options, err := NewCollectionOptions(firstOf(c.Listed))
		coll.options = options
		return err
	}
	return nil
}

// restore puts an outcome into its session.
func (s *sessions) restore(e *Engine, o outcome) {
	session := s.byID[string(o.session)]
	if session == nil {
		session = newSession(e, o.session)
		s.byID[string(o.session)] = session
	}
	if session.id.Number != o.number {
		session.moveTo(o.number, sessionRetryable)
	}
	if o.committed {
		session.state = sessionCommitted
		return
	}
	if session.statements == nil {
		session.statements = map[int32]Result{}
	}
	session.statements[o.statement] = o.result
}
