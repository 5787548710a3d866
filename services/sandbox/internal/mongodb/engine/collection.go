package engine

import (
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
)

// CollectionOptions are what create and collMod can set.
type CollectionOptions struct {
	// Validator refuses documents it does not match; nil accepts all.
	Validator storage.Predicate
	// Lenient lets documents be changed that the Validator would have refused
	// before.
	Lenient bool
	// Capped bounds the collection; nil for none.
	Capped *Capped
	// View is set for what is no collection but a view of one.
	View *ViewOptions
	// Images keeps documents as they were before and after each change, for
	// change streams.
	Images bool
	// Collation is that of statements and indexes which name none; nil for none.
	Collation *collation.Collation
	// Listed are the options as listCollections shows them; nil for none.
	Listed bson.Raw
}

// ViewOptions are what a view is made of: a collection, or view, of the same
// database, and a pipeline.
type ViewOptions struct {
	On       string
	Pipeline []bson.Raw
}

// collection is a table under a name. All of it is guarded by Engine.mu.
type collection struct {
	ns      oplog.Namespace
	uuid    uuid.UUID // of a view it is Nil
	options CollectionOptions
	table   *storage.Table
	// view is a snapshot of the table, nil when the table has changed since.
	view *storage.Table
	// reindexed is the number of the write that last changed the indexes.
	reindexed uint64
	// records and keys are what open transactions have written: those with the
	// same id or key, of another transaction or of none, must not.
	records map[int64]*Txn
	keys    map[uniqueKey]*Txn
}

// uniqueKey is a key of a unique index.
type uniqueKey struct{ index, key string }

func newCollection(ns oplog.Namespace, options CollectionOptions) *collection {
	c := &collection{
		ns: ns, options: options, table: storage.NewTable(),
		records: map[int64]*Txn{}, keys: map[uniqueKey]*Txn{},
	}
	if options.View == nil {
		c.uuid = uuid.New()
	}
	c.table.Indexes[0].Spec.Collation = options.Collation
	return c
}

// snapshot gives a table that nobody writes to.
func (c *collection) snapshot() *storage.Table {
	if c.view == nil {
		c.view = c.table.Snapshot()
	}
	return c.view
}

// reindex notes that indexes have come or gone. It needs mu.
func (e *Engine) reindex(c *collection) {
	e.writes++
	c.reindexed = e.writes
	c.view = nil
}

// busy reports a transaction that has written to the collection.
func (c *collection) busy() error {
	for _, txn := range c.records {
		return &blocked{by: txn}
	}
	for _, txn := range c.keys {
		return &blocked{by: txn}
	}
	return nil
}
