package engine

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
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
	case itemDocument:
		return e.restoreDocument(r)
	case itemCounters:
		e.restoreCounters(r.counters())
	default:
		return fmt.Errorf("%w: item of kind %d", errRecord, kind)
	}
	return r.err
}

// remember puts an entry into the oplog, and the clock forward to it.
func (e *Engine) remember(entry Entry) {
	e.clock = max(e.clock, entry.Time)
	e.end = e.oplog.append(entry)
	e.oplog.advance(e.end)
}

func (e *Engine) restoreCounters(c counters) {
	e.clock, e.lastRecord = c.clock, c.lastRecord
	e.oplog.cut = c.cut
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
	return coll.table.addListed(listed)
}

func restoredCollection(ns Namespace, listed bson.Raw) (*collection, error) {
	options, err := NewCollectionOptions(listed)
	if err != nil {
		return nil, err
	}
	return newCollection(ns, options), nil
}

// addListed builds indexes from their shown specifications.
func (t *table) addListed(listed []bson.Raw) error {
	for _, doc := range listed {
		spec, err := NewIndexSpec(doc)
		if err != nil {
			return err
		}
		if err := t.addIndex(spec); err != nil {
			return err
		}
	}
	return nil
}

// restoreDocument adds to the collection that came last.
func (e *Engine) restoreDocument(r *decoder) error {
	id, doc := int64(r.uint()), r.document()
	if r.err != nil || e.filling == nil {
		return errRecord
	}
	return e.filling.table.insert(id, doc, 0)
}

// redo makes a change again.
func (e *Engine) redo(c change) error {
	switch c.Operation {
	case OpNoop, OpDropDatabase:
		if c.Operation == OpDropDatabase {
			delete(e.databases, c.NS.DB)
		}
		return nil
	case OpCreate:
		coll, err := restoredCollection(c.NS, firstOf(c.listed))
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
	if c.concernsDocument() {
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

func (e *Engine) redoDocument(coll *collection, c change) error {
	e.lastRecord = max(e.lastRecord, c.record)
	before, there := coll.table.records.Get(c.record)
	if there == (c.Operation == OpInsert) {
		return fmt.Errorf("%w: record %d is there: %t", errRecord, c.record, there)
	}
	switch c.Operation {
	case OpInsert:
		err := coll.table.insert(c.record, c.Doc, 0)
		coll.trim()
		return err
	case OpReplace:
		return coll.table.replace(c.record, before, c.Doc, 0)
	case OpUpdate:
		return coll.table.replace(c.record, before, c.after, 0)
	default:
		coll.table.remove(c.record, before)
		return nil
	}
}

func (e *Engine) redoCollection(coll *collection, c change) error {
	switch c.Operation {
	case OpDrop:
		delete(e.collections, c.NS)
	case OpRename:
		delete(e.collections, c.NS)
		coll.ns = c.To
		e.install(coll)
	case OpCreateIndexes:
		return coll.table.addListed(c.listed)
	case OpDropIndexes:
		for _, name := range c.names {
			if ix := coll.table.indexNamed(name); ix != nil {
				coll.table.dropIndex(ix)
			}
		}
	case OpCollMod:
		options, err := NewCollectionOptions(firstOf(c.listed))
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
