package engine

import (
	"bytes"
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// IndexesBuilt tells what CreateIndexes did.
type IndexesBuilt struct {
	Before, After     int
	CollectionCreated bool
	// Present tells that one of the indexes was there already.
	Present bool
}

// CreateIndexes builds indexes, all or none of them. Those that are there
// already are left alone, and where all of them are no open transaction is waited
// for: as the server does, which looks before it locks the collection.
func (e *Engine) CreateIndexes(ctx context.Context, txn *Txn, ns oplog.Namespace, specs []storage.IndexSpec) (IndexesBuilt, error) {
	var built IndexesBuilt
	err := e.write(ctx, func() error {
		built = IndexesBuilt{CollectionCreated: !e.has(txn, ns)}
		t, err := e.targetOrNew(Write{Txn: txn}, ns)
		if err != nil {
			return err
		}
		if txn != nil && !txn.own[ns].made {
			return mongoerr.New(mongoerr.OperationNotSupportedInTransaction,
				"Cannot create new indexes on existing collection %s in a multi-document transaction.", ns)
		}
		if txn == nil && !t.table.HasAll(specs) {
			if err := t.coll.busy(); err != nil {
				return err
			}
		}
		built.Before = len(t.table.Indexes)
		if built.Present, err = t.addIndexes(specs); err != nil {
			t.table.Indexes = t.table.Indexes[:built.Before]
			return ns.Named(err)
		}
		built.After = len(t.table.Indexes)
		c := oplog.Change{Entry: oplog.Entry{Operation: oplog.OpCreateIndexes, NS: ns, UUID: t.coll.uuid}}
		for _, ix := range t.table.Indexes[built.Before:] {
			c.Listed = append(c.Listed, ix.Spec.Listed)
		}
		switch {
		case txn != nil:
			txn.ops = append(txn.ops, txnOp{coll: t.coll, Change: c})
			// The collection is the transaction's own until the commit: nobody
			// reads its live table.
			return t.coll.table.Adopt(t.table.Indexes[built.Before:])
		case built.After > built.Before:
			e.logChange(c)
		}
		t.coll.view = nil
		return nil
	})
	return built, err
}

// addIndexes builds those that are not there, and reports whether one was.
func (t *target) addIndexes(specs []storage.IndexSpec) (some bool, err error) {
	for _, spec := range specs {
		present, err := t.table.Conflicting(spec)
		if err != nil {
			return some, err
		}
		if present {
			some = true
			continue
		}
		if err := t.table.AddIndex(spec); err != nil {
			return some, err
		}
	}
	return some, nil
}

// AlterIndex exchanges the specification of an index for another of the same
// name and key, which choose makes of the one that it picks.
func (e *Engine) AlterIndex(
	ctx context.Context, ns oplog.Namespace, choose func([]storage.IndexSpec) (storage.IndexSpec, error),
) error {
	return e.write(ctx, func() error {
		coll := e.collections[ns]
		if coll == nil {
			return errNoNamespace("ns does not exist")
		}
		spec, err := choose(coll.table.Specs())
		if err != nil {
			return err
		}
		ix := coll.table.IndexNamed(spec.Name)
		if bytes.Equal(ix.Spec.Listed, spec.Listed) {
			return nil
		}
		ix.Spec = spec
		coll.view = nil
		// Who restores the collection drops the index and builds it again.
		e.logChange(oplog.Change{Entry: oplog.Entry{Operation: oplog.OpDropIndexes, NS: ns, UUID: coll.uuid}, Names: []string{spec.Name}})
		e.logChange(oplog.Change{Entry: oplog.Entry{Operation: oplog.OpCreateIndexes, NS: ns, UUID: coll.uuid}, Listed: []bson.Raw{spec.Listed}})
		return nil
	})
}

// DropIndexes deletes the indexes that choose picks, and returns how many there
// were before.
func (e *Engine) DropIndexes(
	ctx context.Context, ns oplog.Namespace, choose func([]storage.IndexSpec) ([]string, error),
) (int, error) {
	before := 0
	err := e.write(ctx, func() error {
		coll := e.collections[ns]
		if coll == nil {
			return errNoNamespace("ns not found")
		}
		if err := coll.busy(); err != nil {
			return err
		}
		names, err := choose(coll.table.Specs())
		if err != nil {
			return err
		}
		before = len(coll.table.Indexes)
		for _, name := range names {
			if ix := coll.table.IndexNamed(name); ix != nil {
				coll.table.DropIndex(ix)
			}
		}
		coll.view = nil
		e.logChange(oplog.Change{Entry: oplog.Entry{Operation: oplog.OpDropIndexes, NS: ns, UUID: coll.uuid}, Names: names})
		return nil
	})
	return before, err
}
