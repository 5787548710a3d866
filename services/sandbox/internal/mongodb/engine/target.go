package engine

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/modify"
)

// target is what a statement reads and writes: the live table of a collection,
// or a transaction's own version of it. Its methods need Engine.mu.
type target struct {
	engine *Engine
	coll   *collection
	table  *storage.Table
	// own is the transaction's version of the collection; nil without one.
	own   *ownCollection
	write Write
}

// target finds the collection of a statement; nil if it is not there.
func (e *Engine) target(w Write, ns oplog.Namespace) *target {
	if w.Txn != nil {
		return w.Txn.target(w, ns)
	}
	if coll := e.collections[ns]; coll != nil {
		return &target{engine: e, coll: coll, table: coll.table, write: w}
	}
	return nil
}

// targetOrNew finds the collection of a statement that stores documents and
// makes it if it is not there.
func (e *Engine) targetOrNew(w Write, ns oplog.Namespace) (*target, error) {
	if t := e.target(w, ns); t != nil {
		return t, nil
	}
	if err := e.create(w.Txn, ns, CollectionOptions{}); err != nil {
		return nil, err
	}
	return e.target(w, ns), nil
}

// insert stores a new document.
func (t *target) insert(doc bson.Raw) error {
	if err := t.validate(doc); err != nil {
		return err
	}
	if err := t.cappedInsert(doc); err != nil {
		return err
	}
	e := t.engine
	e.lastRecord++
	id := e.lastRecord
	if t.write.Txn != nil {
		return t.write.Txn.insert(t, id, doc)
	}
	if err := t.freeOf(doc); err != nil {
		return err
	}
	if err := t.write.fault(); err != nil {
		return err
	}
	t.retain()
	e.writes++
	if err := t.table.Insert(id, doc, e.writes); err != nil {
		return t.heldBack(doc, t.coll.ns.Named(err))
	}
	t.coll.trim()
	t.coll.view = nil
	e.logChange(t.inserted(id, doc))
	return nil
}

// replace stores a changed document.
func (t *target) replace(id int64, before storage.Record, applied modify.Applied) error {
	if len(applied.Doc) > bsonkit.MaxDocument {
		return mongoerr.New(17419, "Resulting document after update is larger than %d", bsonkit.MaxDocument)
	}
	if err := t.validate(applied.Doc); err != nil && !t.lenient(before.Doc) {
		return err
	}
	if err := t.cappedReplace(before.Doc, applied.Doc); err != nil {
		return err
	}
	e := t.engine
	if t.write.Txn != nil {
		return t.write.Txn.replace(t, id, before, applied)
	}
	if err := t.unclaimed(id); err != nil {
		return err
	}
	if err := t.freeOf(applied.Doc); err != nil {
		return err
	}
	if err := t.write.fault(); err != nil {
		return err
	}
	t.retain()
	e.writes++
	if err := t.table.Replace(id, before, applied.Doc, e.writes); err != nil {
		return t.heldBack(applied.Doc, t.coll.ns.Named(err))
	}
	t.coll.view = nil
	e.logChange(t.replaced(id, before.Doc, applied))
	return nil
}

// remove deletes a document.
func (t *target) remove(id int64, before storage.Record) error {
	e := t.engine
	if t.write.Txn != nil {
		return t.write.Txn.remove(t, id, before)
	}
	if err := t.unclaimed(id); err != nil {
		return err
	}
	if err := t.write.fault(); err != nil {
		return err
	}
	t.retain()
	e.writes++
	t.table.Remove(id, before)
	t.coll.view = nil
	e.logChange(t.removed(id, before.Doc))
	return nil
}

// retain keeps the collection for reads of a majority. Without a Pace it does not
// where the client waits for that, which takes no time.
func (t *target) retain() {
	if !t.write.Majority || t.engine.pacer.now().hides() {
		t.engine.retain(t.coll.ns)
	}
}

// fault makes a retryable write fail that is to be made to.
func (w Write) fault() error {
	if w.Retry == nil || w.Fault == nil {
		return nil
	}
	return w.Fault()
}

func (t *target) validate(doc bson.Raw) error {
	if t.coll.options.Validator == nil || t.write.BypassValidation {
		return nil
	}
	valid, err := t.coll.options.Validator(doc)
	if err != nil {
		return err
	}
	if !valid {
		return mongoerr.New(mongoerr.DocumentValidationFailure, "Document failed validation")
	}
	return nil
}

// lenient reports that a document may be refused after its change, as it was
// before.
func (t *target) lenient(before bson.Raw) bool {
	return t.coll.options.Lenient && mongoerr.Is(t.validate(before), mongoerr.DocumentValidationFailure)
}

// unclaimed blocks on a transaction that has written to the record.
func (t *target) unclaimed(id int64) error {
	if txn := t.coll.records[id]; txn != nil {
		return &blocked{by: txn}
	}
	return nil
}

// freeOf blocks on a transaction that has taken a unique key of the document.
func (t *target) freeOf(doc bson.Raw) error {
	if len(t.coll.keys) == 0 {
		return nil
	}
	return t.table.EachUniqueKey(doc, func(ix *storage.Index, key string) error {
		if txn := t.coll.keys[uniqueKey{ix.Spec.Name, key}]; txn != nil {
			return &blocked{by: txn}
		}
		return nil
	})
}

// heldBack blocks instead of reporting a duplicate key, when a transaction has
// written to the record that holds the key: it may be about to free it.
func (t *target) heldBack(doc bson.Raw, failure error) error {
	if len(t.coll.records) == 0 || !mongoerr.Is(failure, mongoerr.DuplicateKey) {
		return failure
	}
	err := t.table.EachUniqueKey(doc, func(ix *storage.Index, key string) error {
		if holder, taken := ix.Keys.Get(key); taken {
			return t.unclaimed(holder)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return failure
}

func (t *target) change(op oplog.Operation, id int64, doc bson.Raw) oplog.Change {
	return oplog.Change{Record: id, Entry: oplog.Entry{Operation: op, NS: t.coll.ns, UUID: t.coll.uuid, Key: documentKey(doc)}}
}

func (t *target) inserted(id int64, doc bson.Raw) oplog.Change {
	c := t.change(oplog.OpInsert, id, doc)
	c.Doc = doc
	return c
}

func (t *target) replaced(id int64, before bson.Raw, applied modify.Applied) oplog.Change {
	var c oplog.Change
	if applied.Delta == nil {
		c = t.change(oplog.OpReplace, id, applied.Doc)
		c.Doc = applied.Doc
	} else {
		c = t.change(oplog.OpUpdate, id, applied.Doc)
		c.Updated, c.Removed, c.Stored = applied.Delta.Updated, applied.Delta.Removed, applied.Doc
		c.Further = further(applied.Delta)
	}
	if t.coll.options.Images {
		c.Before, c.After = before, c.Stored
	}
	return c
}

// further is what an entry has beside what was set and removed.
func further(d *modify.Delta) bson.Raw {
	if len(d.Truncated) == 0 && d.Ambiguous == nil {
		return nil
	}
	b := bsonkit.NewBuilder(nil)
	if len(d.Truncated) > 0 {
		arrays := make([]bson.RawValue, len(d.Truncated))
		for i, cut := range d.Truncated {
			array := bsonkit.NewBuilder(nil)
			array.Append("field", bsonkit.String(cut.Path))
			array.Append("newSize", bsonkit.Int32(int32(cut.Size)))
			arrays[i] = bsonkit.Document(array.Finish())
		}
		b.Append("truncatedArrays", bsonkit.Array(arrays))
	}
	if d.Ambiguous != nil {
		b.Append("disambiguatedPaths", bsonkit.Document(d.Ambiguous))
	}
	return b.Finish()
}

func (t *target) removed(id int64, doc bson.Raw) oplog.Change {
	c := t.change(oplog.OpDelete, id, doc)
	if t.coll.options.Images {
		c.Before = doc
	}
	return c
}

// documentKey is {_id: …} of a stored document, in memory of its own so that
// it does not keep the whole document.
func documentKey(doc bson.Raw) bson.Raw {
	id, _ := bsonkit.Get(doc, "_id")
	return idDocument(id)
}

func idDocument(id bson.RawValue) bson.Raw {
	key := make([]byte, 4, 4+5+len(id.Value)+1)
	key = append(key, byte(id.Type), '_', 'i', 'd', 0)
	key = append(append(key, id.Value...), 0)
	putLength(key)
	return key
}
