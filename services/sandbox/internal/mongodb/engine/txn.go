package engine

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/modify"
)

// Txn is an open transaction: a snapshot of all collections, taken when it
// began, with its own writes on top. What it has written is pending on the live
// collections until it ends. It is used by one statement at a time; its fields
// but ended are guarded by Engine.mu.
type Txn struct {
	engine *Engine
	id     oplog.TxnID
	began  time.Time
	// write is the number of the last write that the snapshot shows.
	write uint64
	// seen are the collections of the snapshot; own those that the transaction
	// has its own version of.
	seen map[oplog.Namespace]seenCollection
	own  map[oplog.Namespace]*ownCollection
	// ops are the writes, bytes is their size.
	ops   []txnOp
	bytes int
	// ended is closed at commit and abort.
	ended chan struct{}
	over  bool
	// Level is that of its read concern, as it was given.
	Level string
}

type seenCollection struct {
	coll *collection
	view *storage.Table
}

// ownCollection is a collection as the transaction sees it.
type ownCollection struct {
	coll *collection
	// ns is its name in the snapshot; the collection may have another one since.
	ns    oplog.Namespace
	table *storage.Table
	// made tells that the transaction creates the collection.
	made bool
	// inserted are the records that nobody else knows of.
	inserted map[int64]bool
	// records and keys are what the transaction has claimed on coll.
	records []int64
	keys    []uniqueKey
}

// txnOp is one write, as it is to be done again on the live table.
type txnOp struct {
	oplog.Change
	coll *collection
	// doc is the document after the write, nil for a deletion.
	doc bson.Raw
}

// Open opens a transaction.
func (e *Engine) Open(id oplog.TxnID) *Txn {
	e.mu.Lock()
	defer e.mu.Unlock()
	txn := &Txn{
		engine: e, id: id, began: e.config.Now(), write: e.writes,
		seen: make(map[oplog.Namespace]seenCollection, len(e.collections)),
		own:  map[oplog.Namespace]*ownCollection{}, ended: make(chan struct{}),
	}
	for ns, coll := range e.collections {
		txn.seen[ns] = seenCollection{coll: coll, view: coll.snapshot()}
	}
	e.open[txn] = struct{}{}
	return txn
}

// goesOn refuses a transaction that has ended: it has no collections any more. A nil
// one is no transaction. It needs Engine.mu.
func (txn *Txn) goesOn() error {
	if txn != nil && txn.over {
		return errNoTransaction(txn.id.Number)
	}
	return nil
}

// view gives the transaction's present state of a collection, nil for none.
func (txn *Txn) view(ns oplog.Namespace) *storage.Table {
	if own := txn.own[ns]; own != nil {
		return own.table.Snapshot()
	}
	return txn.seen[ns].view
}

// target gives the transaction's own version of a collection.
func (txn *Txn) target(w Write, ns oplog.Namespace) *target {
	own := txn.own[ns]
	if own == nil {
		seen, ok := txn.seen[ns]
		if !ok {
			return nil
		}
		own = &ownCollection{coll: seen.coll, ns: ns, table: seen.view.Snapshot(), inserted: map[int64]bool{}}
		txn.own[ns] = own
	}
	return &target{engine: txn.engine, coll: own.coll, table: own.table, own: own, write: w}
}

func (txn *Txn) insert(t *target, id int64, doc bson.Raw) error {
	if err := txn.still(t); err != nil {
		return err
	}
	if err := t.table.Insert(id, doc, txn.write); err != nil {
		return t.coll.ns.Named(err)
	}
	if err := txn.claimKeys(t, doc); err != nil {
		return err
	}
	t.own.inserted[id] = true
	txn.claim(t, id)
	return txn.log(txnOp{coll: t.coll, Change: t.inserted(id, doc), doc: doc})
}

func (txn *Txn) replace(t *target, id int64, before storage.Record, applied modify.Applied) error {
	if err := txn.unchanged(t, id); err != nil {
		return err
	}
	if err := t.table.Replace(id, before, applied.Doc, txn.write); err != nil {
		return t.coll.ns.Named(err)
	}
	if err := txn.claimKeys(t, applied.Doc); err != nil {
		return err
	}
	txn.claim(t, id)
	return txn.log(txnOp{coll: t.coll, Change: t.replaced(id, before.Doc, applied), doc: applied.Doc})
}

func (txn *Txn) remove(t *target, id int64, before storage.Record) error {
	if err := txn.unchanged(t, id); err != nil {
		return err
	}
	t.table.Remove(id, before)
	txn.claim(t, id)
	return txn.log(txnOp{coll: t.coll, Change: t.removed(id, before.Doc)})
}

// maxTransaction bounds what a transaction writes: its commit is one record of the
// journal.
const maxTransaction = 128 << 20

// log adds a write to those of the commit, unless it makes them too many.
func (txn *Txn) log(op txnOp) error {
	if txn.bytes += op.Size(); txn.bytes > maxTransaction {
		return mongoerr.New(mongoerr.TransactionTooLarge,
			"Total size of all transaction operations must be less than %d. Actual size is %d", maxTransaction, txn.bytes)
	}
	txn.ops = append(txn.ops, op)
	return nil
}

// still refuses a write to a collection that has gone since the snapshot, or has
// another name or other indexes: these could refuse what the commit stores.
func (txn *Txn) still(t *target) error {
	if err := txn.goesOn(); err != nil {
		return err
	}
	if t.own.made {
		return nil
	}
	if txn.engine.collections[t.own.ns] != t.coll {
		return errConflict()
	}
	if t.coll.reindexed > txn.write {
		return mongoerr.New(mongoerr.SnapshotUnavailable,
			"Unable to read from a snapshot due to pending collection catalog changes; please retry the operation.").
			WithLabels("TransientTransactionError")
	}
	return nil
}

// unchanged refuses a write to a record that somebody else has written since
// the snapshot, or is writing.
func (txn *Txn) unchanged(t *target, id int64) error {
	if err := txn.still(t); err != nil {
		return err
	}
	if t.own.inserted[id] || t.coll.records[id] == txn {
		return nil
	}
	live, there := t.coll.table.Records.Get(id)
	if !there || live.Write > txn.write || t.coll.records[id] != nil {
		return errConflict()
	}
	return nil
}

func (txn *Txn) claim(t *target, id int64) {
	if t.coll.records[id] != txn {
		t.coll.records[id] = txn
		t.own.records = append(t.own.records, id)
	}
}

// claimKeys takes the unique keys of a document that the transaction stores. A
// key that the live table has and the transaction did not free was stored
// after the snapshot.
func (txn *Txn) claimKeys(t *target, doc bson.Raw) error {
	return t.table.EachUniqueKey(doc, func(ix *storage.Index, key string) error {
		name := uniqueKey{ix.Spec.Name, key}
		if holder := t.coll.keys[name]; holder != nil && holder != txn {
			return errConflict()
		}
		if live := t.coll.table.IndexNamed(ix.Spec.Name); live != nil {
			if id, taken := live.Keys.Get(key); taken && t.coll.records[id] != txn {
				if mine, own := ix.Keys.Get(key); !own || mine != id {
					return errConflict()
				}
			}
		}
		if t.coll.keys[name] == nil {
			t.coll.keys[name] = txn
			t.own.keys = append(t.own.keys, name)
		}
		return nil
	})
}

// Commit applies the transaction's writes, all under one cluster time, and ends
// it.
func (txn *Txn) Commit() error { return txn.engine.locked(txn.commit) }

// commit needs Engine.mu.
func (txn *Txn) commit() error {
	e := txn.engine
	if err := txn.goesOn(); err != nil {
		return err
	}
	var at oplog.Timestamp
	if len(txn.ops) > 0 {
		at = e.tick()
	}
	index := uint32(0)
	for _, op := range txn.ops {
		if op.Operation == oplog.OpCreate {
			e.retainName(op.coll.ns)
		} else {
			e.retain(op.coll.ns)
		}
		txn.apply(op)
		c := op.Change
		c.Time = at
		if c.ConcernsDocument() {
			c.Index, c.Txn = index, &txn.id
			index++
		}
		e.add(c)
	}
	e.outcomes = append(e.outcomes, outcome{session: txn.id.Session, number: txn.id.Number, committed: true})
	txn.end()
	return nil
}

// apply does one write on the live table. Everything it touches was claimed, so
// nothing can stand in its way.
func (txn *Txn) apply(op txnOp) {
	e, live := txn.engine, op.coll.table
	e.writes++
	op.coll.view = nil
	switch op.Operation {
	case oplog.OpCreate:
		e.install(op.coll)
	case oplog.OpInsert:
		if err := live.Insert(op.Record, op.doc, e.writes); err != nil {
			panic("engine: committed insert refused: " + err.Error())
		}
	case oplog.OpDelete:
		before, _ := live.Records.Get(op.Record)
		live.Remove(op.Record, before)
	case oplog.OpUpdate, oplog.OpReplace:
		before, _ := live.Records.Get(op.Record)
		if err := live.Replace(op.Record, before, op.doc, e.writes); err != nil {
			panic("engine: committed update refused: " + err.Error())
		}
	}
}

// Abort ends the transaction without a trace. It may be called again.
func (txn *Txn) Abort() {
	txn.engine.mu.Lock()
	defer txn.engine.mu.Unlock()
	if !txn.over {
		txn.end()
	}
}

// end gives up all claims. It needs Engine.mu.
func (txn *Txn) end() {
	for _, own := range txn.own {
		for _, id := range own.records {
			delete(own.coll.records, id)
		}
		for _, key := range own.keys {
			delete(own.coll.keys, key)
		}
		if own.made {
			delete(txn.engine.creating, own.coll.ns)
		}
	}
	txn.seen, txn.own, txn.ops = nil, nil, nil
	txn.over = true
	delete(txn.engine.open, txn)
	close(txn.ended)
}

// AbortTransactions ends all open transactions without a trace.
func (e *Engine) AbortTransactions() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for txn := range e.open {
		txn.end()
	}
}

// abortOldTransactions ends those that are older than the configured lifetime.
func (e *Engine) abortOldTransactions(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for txn := range e.open {
		if now.Sub(txn.began) >= e.config.TransactionLifetime {
			e.config.Log.Info().Int64("txn_number", txn.id.Number).Msg("transaction aborted, too old")
			txn.end()
		}
	}
}

func errConflict() error {
	return mongoerr.New(mongoerr.WriteConflict,
		"WriteConflict error: this operation conflicted with another operation. Please retry your operation or multi-document transaction.").
		WithLabels("TransientTransactionError")
}

func errNoTransaction(number int64) error {
	return mongoerr.New(mongoerr.NoSuchTransaction,
		"Given transaction number %d does not match any in-progress transactions.", number).
		WithLabels("TransientTransactionError")
}

func (txn *Txn) isOver() bool {
	txn.engine.mu.Lock()
	defer txn.engine.mu.Unlock()
	return txn.over
}
