package engine

import (
	"bytes"
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
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
		missing, err := t.missing(specs)
		switch {
		case err != nil:
		case txn != nil:
			err = txn.mayIndex(t, missing)
		case missing:
			err = t.coll.busy()
		}
		if err != nil {
			return err
		}
		built.Before = len(t.table.Indexes)
		if built.Present, err = t.addIndexes(specs); err != nil {
			t.table.Indexes = t.table.Indexes[:built.Before]
			return ns.Named(err)
		}
		built.After = len(t.table.Indexes)
		var listed []bson.Raw
		for _, ix := range t.table.Indexes[built.Before:] {
			listed = append(listed, ix.Spec.Listed)
		}
		switch {
		case txn != nil && listed == nil:
		case txn != nil:
			if err := txn.log(txnOp{coll: t.coll, Change: t.coll.indexed(listed)}); err != nil {
				return err
			}
			// The collection is the transaction's own until the commit: nobody
			// reads its live table.
			return t.coll.table.Adopt(t.table.Indexes[built.Before:])
		case t.table.Records.Len() == 0:
			for _, one := range listed {
				e.logChange(t.coll.indexed([]bson.Raw{one}))
			}
		case built.After > built.Before:
			e.logChange(t.coll.indexed(listed))
		}
		if txn == nil && listed != nil {
			e.reindex(t.coll)
		}
		return nil
	})
	return built, err
}

// missing reports that one of the indexes is not there. Those that cannot be
// beside what is there are refused.
func (t *target) missing(specs []storage.IndexSpec) (some bool, err error) {
	for _, spec := range specs {
		present, err := t.table.Conflicting(spec)
		if err != nil {
			return false, t.coll.ns.Named(err)
		}
		some = some || !present
	}
	return some, nil
}

// mayIndex refuses a transaction new indexes of collections that it has not made,
// or has put something into.
func (txn *Txn) mayIndex(t *target, missing bool) error {
	switch {
	case missing && !txn.own[t.coll.ns].made:
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction,
			"Cannot create new indexes on existing collection %s in a multi-document transaction.", t.coll.ns)
	case missing && t.table.Records.Len() > 0:
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction,
			"Cannot create new indexes on non-empty collection %s in a multi-document transaction.", t.coll.ns)
	}
	return nil
}

// maxIndexes is how many a collection has at most, that of _id included.
const maxIndexes = 64

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
		if len(t.table.Indexes) >= maxIndexes {
			return some, mongoerr.New(mongoerr.CannotCreateIndex, "add index fails, too many indexes for %s key:%s",
				t.coll.ns, bsonkit.Describe(bsonkit.Document(spec.Key())))
		}
		if err := t.table.AddIndex(spec); err != nil {
			return some, err
		}
	}
	return some, nil
}

// AlterIndex exchanges the specification of an index for another of the same
// name and key, which choose makes of the one that it picks. Described is how an
// event tells it.
func (e *Engine) AlterIndex(
	ctx context.Context, ns oplog.Namespace, described bson.Raw, choose func([]storage.IndexSpec) (storage.IndexSpec, error),
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
		before := coll.stateBefore(ix.Spec.Listed)
		ix.Spec = spec
		coll.view = nil
		// Who restores the collection drops the index and builds it again. Only the
		// second makes an event.
		e.logChange(oplog.Change{Entry: oplog.Entry{Operation: oplog.OpDropIndexes, NS: ns, UUID: coll.uuid}, Names: []string{spec.Name}})
		built := coll.indexed([]bson.Raw{spec.Listed})
		built.Further = modifyDescription(described, before)
		e.logChange(built)
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
			ix := coll.table.IndexNamed(name)
			if ix == nil {
				continue
			}
			coll.table.DropIndex(ix)
			e.logChange(oplog.Change{
				Entry: oplog.Entry{Operation: oplog.OpDropIndexes, NS: ns, UUID: coll.uuid, Further: indexesDescription([]bson.Raw{ix.Spec.Listed})},
				Names: []string{name},
			})
		}
		e.reindex(coll)
		return nil
	})
	return before, err
}
