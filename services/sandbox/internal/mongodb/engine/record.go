package engine

import (
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
)

// A journal record is a sequence of items, each beginning with its kind.
const (
	itemChange     = 1 // a change, to be done again and to be put into the oplog
	itemOutcome    = 2 // what a session has on record
	itemCollection = 3 // a collection with its indexes, in a picture
	itemDocument   = 4 // a document, in a picture, of the collection named before it; in older pictures maybe in the record before
	itemHistory    = 5 // an oplog entry that is not to be done again, in a picture
	itemCounters   = 6 // clock and counters, in a picture
	itemContinue   = 7 // names the collection of the documents that follow; an earlier record has begun it
)

// What an entry may have.
const (
	entryTxn     = 1
	entryFurther = 2
	entryWall    = 4 // always, but in older journals
)

func (w *encoder) change(c *oplog.Change) {
	w.uint(itemChange)
	w.entry(&c.Entry)
	w.uint(uint64(c.Record))
	w.bytes(c.Stored)
	w.documents(c.Listed)
	w.texts(c.Names)
}

func (r *decoder) change() oplog.Change {
	c := oplog.Change{Entry: r.entry()}
	c.Record = int64(r.uint())
	c.Stored = r.document()
	c.Listed = r.documents()
	c.Names = r.texts()
	return c
}

func (w *encoder) entry(e *oplog.Entry) {
	w.buf = binary.BigEndian.AppendUint64(w.buf, uint64(e.Time))
	w.uint(uint64(e.Index))
	w.uint(uint64(e.Operation))
	w.namespace(e.NS)
	w.id(e.UUID)
	w.bytes(e.Key)
	w.bytes(e.Doc)
	w.bytes(e.Updated)
	w.texts(e.Removed)
	w.bytes(e.Before)
	w.bytes(e.After)
	has := uint64(entryWall)
	if e.Txn != nil {
		has |= entryTxn
	}
	if e.Further != nil {
		has |= entryFurther
	}
	w.uint(has)
	if e.Txn != nil {
		w.bytes(e.Txn.Session)
		w.uint(uint64(e.Txn.Number))
	}
	if e.Further != nil {
		w.bytes(e.Further)
	}
	w.uint(uint64(e.Wall))
	if e.Operation == oplog.OpRename {
		w.namespace(e.To)
		w.flag(e.DropTarget)
	}
	w.text(e.Note)
}

func (r *decoder) entry() oplog.Entry {
	var e oplog.Entry
	if at := r.raw(8); at != nil {
		e.Time = oplog.Timestamp(binary.BigEndian.Uint64(at))
	}
	e.Index = uint32(r.uint())
	if e.Operation = oplog.Operation(r.uint()); e.Operation > oplog.LastOperation {
		r.err = errRecord
	}
	e.NS = r.namespace()
	e.UUID = r.id()
	e.Key = r.document()
	e.Doc = r.document()
	e.Updated = r.document()
	e.Removed = r.texts()
	e.Before = r.document()
	e.After = r.document()
	has := r.uint()
	if has&entryTxn != 0 {
		e.Txn = &oplog.TxnID{Session: r.document(), Number: int64(r.uint())}
	}
	if has&entryFurther != 0 {
		e.Further = r.document()
	}
	if e.Wall = int64(e.Time.Seconds()) * 1000; has&entryWall != 0 {
		e.Wall = int64(r.uint())
	}
	if e.Operation == oplog.OpRename {
		e.To = r.namespace()
		e.DropTarget = r.flag()
	}
	e.Note = r.text()
	return e
}

func (w *encoder) outcome(o outcome) {
	w.uint(itemOutcome)
	w.bytes(o.session)
	w.uint(uint64(o.number))
	w.flag(o.committed)
	if o.committed {
		return
	}
	w.uint(uint64(o.statement))
	w.uint(uint64(o.result.Operation))
	w.uint(uint64(o.result.Matched))
	w.uint(uint64(o.result.Modified))
	w.uint(uint64(o.result.Upserted.Type))
	w.bytes(o.result.Upserted.Value)
	w.bytes(o.result.Before)
	w.bytes(o.result.After)
}

func (r *decoder) outcome() outcome {
	o := outcome{session: r.document(), number: int64(r.uint()), committed: r.flag()}
	if o.committed {
		return o
	}
	o.statement = int32(r.uint())
	o.result.Operation = oplog.Operation(r.uint())
	o.result.Matched = int(r.uint())
	o.result.Modified = int(r.uint())
	o.result.Upserted.Type = bson.Type(r.uint())
	o.result.Upserted.Value = r.document()
	o.result.Before = r.document()
	o.result.After = r.document()
	return o
}
