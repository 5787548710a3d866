package engine

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// Capped bounds a collection: the oldest documents go when it grows beyond
// (https://www.mongodb.com/docs/v4.4/core/capped-collections/). What goes so is
// in no oplog.
type Capped struct {
	Bytes int64
	// Documents is 0 for no bound.
	Documents int
}

// cappedOf reads the bounds out of a collection's options, nil for none.
func cappedOf(listed bson.Raw) *Capped {
	capped, _ := bsonkit.Get(listed, "capped")
	if is, _ := capped.BooleanOK(); !is {
		return nil
	}
	size, _ := bsonkit.Get(listed, "size")
	most, _ := bsonkit.Get(listed, "max")
	c := &Capped{}
	c.Bytes, _ = size.AsInt64OK()
	documents, _ := most.AsInt64OK()
	c.Documents = int(documents)
	return c
}

// trim drops the oldest documents of a capped collection. It needs Engine.mu.
func (c *collection) trim() {
	bounds := c.options.Capped
	if bounds == nil {
		return
	}
	for c.table.Bytes > bounds.Bytes || bounds.Documents > 0 && c.table.Records.Len() > bounds.Documents {
		id, oldest, there := c.table.Records.Min()
		if !there {
			return
		}
		c.table.Remove(id, oldest)
	}
}

// cappedInsert refuses what cannot be stored in a capped collection.
func (t *target) cappedInsert(doc bson.Raw) error {
	bounds := t.coll.options.Capped
	switch {
	case bounds == nil:
		return nil
	case t.write.Txn != nil:
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction,
			"Collection '%s' is a capped collection. Writes in transactions are not allowed on capped collections.", t.coll.ns)
	case int64(len(doc)) > bounds.Bytes:
		return mongoerr.New(mongoerr.BadValue, "object to insert exceeds cappedMaxSize")
	}
	return nil
}

// cappedReplace refuses to change the size of a document.
func (t *target) cappedReplace(before, after bson.Raw) error {
	if t.coll.options.Capped == nil {
		return nil
	}
	if err := t.cappedInsert(after); err != nil {
		return err
	}
	if len(before) != len(after) {
		return mongoerr.New(mongoerr.CannotGrowDocumentInCappedNamespace, "Cannot change the size of a document in a capped collection: %d != %d", len(before), len(after))
	}
	return nil
}

// cappedRemove refuses a deletion, of whatever.
func (t *target) cappedRemove() error {
	if t == nil || t.coll.options.Capped == nil {
		return nil
	}
	if t.write.Txn != nil {
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction,
			"Collection '%s' is a capped collection. Writes in transactions are not allowed on capped collections.", t.coll.ns)
	}
	return mongoerr.New(mongoerr.IllegalOperation, "cannot remove from a capped collection: %s", t.coll.ns)
}
