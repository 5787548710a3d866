package engine

import (
	"bytes"
	"context"

	"changerelay/services/sandbox/internal/mongoerr"
)

// IndexesBuilt tells what CreateIndexes did.
type IndexesBuilt struct {
	Before, After     int
	CollectionCreated bool
}

// CreateIndexes builds indexes, all or none of them. Those that are there
// already are left alone.
func (e *Engine) CreateIndexes(ctx context.Context, txn *Txn, ns Namespace, specs []IndexSpec) (IndexesBuilt, error) {
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
		if txn == nil {
			if err := t.coll.busy(); err != nil {
				return err
			}
		}
		built.Before = len(t.table.indexes)
		if err := t.addIndexes(specs); err != nil {
			t.table.indexes = t.table.indexes[:built.Before]
			return err
		}
		built.After = len(t.table.indexes)
		c := change{Entry: Entry{Operation: OpCreateIndexes, NS: ns, UUID: t.coll.uuid}}
		for _, ix := range t.table.indexes[built.Before:] {
			c.listed = append(c.listed, ix.spec.Listed)
		}
		switch {
		case txn != nil:
			txn.ops = append(txn.ops, txnOp{coll: t.coll, change: c})
			// The collection is the transaction's own until the commit: nobody
			// reads its live table.
			return t.coll.table.adopt(t.table.indexes[built.Before:])
		case built.After > built.Before:
			e.logChange(c)
		}
		t.coll.view = nil
		return nil
	})
	return built, err
}

func (t *target) addIndexes(specs []IndexSpec) error {
	for _, spec := range specs {
		present, err := t.table.conflicting(spec)
		if err != nil {
			return err
		}
		if present {
			continue
		}
		if err := t.table.addIndex(spec); err != nil {
			return err
		}
	}
	return nil
}

// adopt makes the same indexes on a table that has no documents yet.
func (t *table) adopt(indexes []*index) error {
	for _, ix := range indexes {
		if err := t.addIndex(ix.spec); err != nil {
			return err
		}
	}
	return nil
}

// conflicting compares a wanted index with those that are there: the same one
// is present; one of the same name or key that differs is refused.
func (t *table) conflicting(spec IndexSpec) (present bool, err error) {
	for _, ix := range t.indexes {
		sameName := ix.spec.Name == spec.Name
		sameKey := ix.spec.sameFields(spec)
		switch {
		case ix.spec.Name == IDIndexName && sameKey:
			return true, nil
		case sameName && !sameKey:
			return false, mongoerr.New(mongoerr.IndexKeySpecsConflict,
				"An existing index has the same name as the requested index. Requested index: %s, existing index: %s",
				spec.Listed, ix.spec.Listed)
		case sameKey && !ix.spec.sameOptions(spec):
			return false, mongoerr.New(mongoerr.IndexOptionsConflict,
				"An equivalent index already exists with the same name but different options. Requested index: %s, existing index: %s",
				spec.Listed, ix.spec.Listed)
		case sameKey && !sameName:
			return false, mongoerr.New(mongoerr.IndexOptionsConflict,
				"Index with name: %s already exists with a different name", spec.Name)
		case sameKey:
			return true, nil
		}
	}
	return false, nil
}

func (s IndexSpec) sameFields(other IndexSpec) bool {
	if len(s.Fields) != len(other.Fields) {
		return false
	}
	for i := range s.Fields {
		if s.Fields[i] != other.Fields[i] {
			return false
		}
	}
	return true
}

func (s IndexSpec) sameOptions(other IndexSpec) bool {
	sameExpiry := (s.ExpireAfter == nil) == (other.ExpireAfter == nil) &&
		(s.ExpireAfter == nil || *s.ExpireAfter == *other.ExpireAfter)
	return sameExpiry && s.Unique == other.Unique && s.Sparse == other.Sparse &&
		bytes.Equal(s.PartialFilter, other.PartialFilter) && bytes.Equal(s.Collation.Spec(), other.Collation.Spec())
}

// DropIndexes deletes the indexes that choose picks, and returns how many there
// were before.
func (e *Engine) DropIndexes(
	ctx context.Context, ns Namespace, choose func([]IndexSpec) ([]string, error),
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
		names, err := choose(coll.table.specs())
		if err != nil {
			return err
		}
		before = len(coll.table.indexes)
		for _, name := range names {
			if ix := coll.table.indexNamed(name); ix != nil {
				coll.table.dropIndex(ix)
			}
		}
		coll.view = nil
		e.logChange(change{Entry: Entry{Operation: OpDropIndexes, NS: ns, UUID: coll.uuid}, names: names})
		return nil
	})
	return before, err
}

// specs lists a table's indexes, that on _id first.
func (t *table) specs() []IndexSpec {
	specs := make([]IndexSpec, len(t.indexes))
	for i, ix := range t.indexes {
		specs[i] = ix.spec
	}
	return specs
}
