package engine

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// CreateCollection makes an empty collection, inside a transaction if txn is
// not nil.
func (e *Engine) CreateCollection(ctx context.Context, txn *Txn, ns oplog.Namespace, options CollectionOptions) error {
	return e.write(ctx, func() error {
		if e.has(txn, ns) {
			return mongoerr.New(mongoerr.NamespaceExists, "Collection already exists. NS: %s", ns)
		}
		return e.create(txn, ns, options)
	})
}

// has reports that a collection is there. It needs mu.
func (e *Engine) has(txn *Txn, ns oplog.Namespace) bool {
	if txn != nil {
		return txn.has(ns)
	}
	return e.collections[ns] != nil
}

// create makes a collection that is not there. It needs mu.
func (e *Engine) create(txn *Txn, ns oplog.Namespace, options CollectionOptions) error {
	if err := ns.ValidateNew(); err != nil {
		return err
	}
	if maker := e.creating[ns]; maker != nil && maker != txn {
		if txn != nil {
			return errConflict()
		}
		return &blocked{by: maker}
	}
	coll := newCollection(ns, options)
	c := oplog.Change{Entry: oplog.Entry{Operation: oplog.OpCreate, NS: ns, UUID: coll.uuid}}
	if options.Listed != nil {
		c.Listed = []bson.Raw{options.Listed}
	}
	if options.View == nil {
		c.Further = createDescription(coll)
	}
	if txn != nil {
		return txn.create(coll, c)
	}
	e.retainName(ns)
	e.install(coll)
	e.logChange(c)
	return nil
}

// install makes a collection known. It needs mu.
func (e *Engine) install(coll *collection) {
	e.collections[coll.ns] = coll
	e.databases[coll.ns.DB] = true
}

func (txn *Txn) has(ns oplog.Namespace) bool {
	_, seen := txn.seen[ns]
	return seen || txn.own[ns] != nil
}

// create makes a collection that exists from the commit on.
func (txn *Txn) create(coll *collection, c oplog.Change) error {
	if err := txn.goesOn(); err != nil {
		return err
	}
	if txn.engine.collections[coll.ns] != nil {
		return errConflict() // made by somebody else since the snapshot
	}
	txn.engine.creating[coll.ns] = txn
	txn.own[coll.ns] = &ownCollection{
		coll: coll, ns: coll.ns, table: coll.table.Snapshot(), made: true, inserted: map[int64]bool{},
	}
	return txn.log(txnOp{coll: coll, Change: c})
}

// Drop deletes a collection and returns how many indexes it had.
func (e *Engine) Drop(ctx context.Context, ns oplog.Namespace) (int, error) {
	indexes := 0
	err := e.write(ctx, func() error {
		coll := e.collections[ns]
		if coll == nil {
			return errNoNamespace("ns not found")
		}
		if err := coll.busy(); err != nil {
			return err
		}
		indexes = len(coll.table.Indexes)
		e.drop(coll)
		return nil
	})
	return indexes, err
}

// drop needs mu.
func (e *Engine) drop(coll *collection) {
	e.retainName(coll.ns)
	delete(e.collections, coll.ns)
	e.log(oplog.Entry{Operation: oplog.OpDrop, NS: coll.ns, UUID: coll.uuid})
}

// DropDatabase deletes a database and reports whether there was one.
func (e *Engine) DropDatabase(ctx context.Context, db string) (bool, error) {
	dropped := false
	err := e.write(ctx, func() error {
		colls := e.collectionsOf(db)
		for _, coll := range colls {
			if err := coll.busy(); err != nil {
				return err
			}
		}
		for _, coll := range colls {
			e.drop(coll)
		}
		dropped = e.databases[db]
		if dropped {
			delete(e.databases, db)
			e.log(oplog.Entry{Operation: oplog.OpDropDatabase, NS: oplog.Namespace{DB: db}})
		}
		return nil
	})
	return dropped, err
}

// Rename gives a collection another name, within its database or across.
func (e *Engine) Rename(ctx context.Context, from, to oplog.Namespace, dropTarget bool) error {
	if err := to.ValidateNew(); err != nil {
		return err
	}
	return e.write(ctx, func() error {
		coll, present := e.collections[from], e.collections[to]
		if coll == nil {
			return errNoNamespace("source namespace does not exist")
		}
		if coll.options.View != nil {
			return mongoerr.New(mongoerr.CommandNotSupportedOnView, "cannot rename view: %s", from)
		}
		if present != nil && present.options.View != nil {
			return mongoerr.New(mongoerr.NamespaceExists, "a view already exists with that name: %s", to)
		}
		if from == to || present != nil && !dropTarget {
			return mongoerr.New(mongoerr.NamespaceExists, "target namespace exists")
		}
		if maker := e.creating[to]; maker != nil {
			return &blocked{by: maker}
		}
		if err := coll.busy(); err != nil {
			return err
		}
		if present != nil {
			if err := present.busy(); err != nil {
				return err
			}
		}
		e.retainName(from)
		e.retainName(to)
		delete(e.collections, from)
		coll.ns = to
		e.install(coll)
		e.log(oplog.Entry{Operation: oplog.OpRename, NS: from, To: to, UUID: coll.uuid, DropTarget: present != nil})
		return nil
	})
}

// SetOptions changes a collection's options by what alter makes of them.
// Described is how an event tells it, nil for no event.
func (e *Engine) SetOptions(
	ctx context.Context, ns oplog.Namespace, described bson.Raw, alter func(CollectionOptions) (CollectionOptions, error),
) error {
	return e.write(ctx, func() error {
		coll := e.collections[ns]
		if coll == nil {
			return errNoNamespace("ns does not exist")
		}
		options, err := alter(coll.options)
		if err != nil {
			return err
		}
		before := coll.stateBefore(nil)
		coll.options = options
		c := oplog.Change{Entry: oplog.Entry{Operation: oplog.OpCollMod, NS: ns, UUID: coll.uuid}}
		if options.Listed != nil {
			c.Listed = []bson.Raw{options.Listed}
		}
		if described != nil {
			c.Further = modifyDescription(described, before)
		}
		e.logChange(c)
		return nil
	})
}

func errNoNamespace(text string) error { return mongoerr.New(mongoerr.NamespaceNotFound, "%s", text) }
