package engine

import (
	"slices"

	"github.com/tidwall/btree"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// record is a stored document with the number of the write that stored it.
// The number tells a transaction whether the record changed after its snapshot.
type record struct {
	doc   bson.Raw
	write uint64
}

// table holds the documents of one collection with their indexes. It does no
// locking: the owner of a table, the engine or a transaction, is its only
// writer, and readers use a snapshot.
type table struct {
	records *btree.Map[int64, record]
	// indexes begins with the index on _id.
	indexes []*index
	bytes   int64
}

func newTable() *table {
	return &table{records: new(btree.Map[int64, record]), indexes: []*index{newIndex(idIndexSpec())}}
}

// snapshot returns a table with the same contents that later writes to t do not
// reach, nor the other way round. It takes time by the number of indexes, not
// of documents, and must not run beside a write or another snapshot of t.
func (t *table) snapshot() *table {
	s := &table{records: t.records.IsoCopy(), indexes: make([]*index, len(t.indexes)), bytes: t.bytes}
	for i, ix := range t.indexes {
		s.indexes[i] = ix.snapshot()
	}
	return s
}

// insert stores a new document. It changes nothing when it returns an error.
func (t *table) insert(id int64, doc bson.Raw, write uint64) error {
	for i, ix := range t.indexes {
		if err := ix.add(id, doc); err != nil {
			t.unindex(i, id, doc)
			return err
		}
	}
	t.records.Set(id, record{doc: doc, write: write})
	t.bytes += int64(len(doc))
	return nil
}

// replace stores another version of a document. It changes nothing when it
// returns an error.
func (t *table) replace(id int64, before record, doc bson.Raw, write uint64) error {
	for i, ix := range t.indexes {
		if err := ix.move(id, before.doc, doc); err != nil {
			for _, done := range t.indexes[:i] {
				// Moving back puts keys where they were a moment ago: they are free.
				_ = done.move(id, doc, before.doc)
			}
			return err
		}
	}
	t.records.Set(id, record{doc: doc, write: write})
	t.bytes += int64(len(doc) - len(before.doc))
	return nil
}

// remove deletes a document.
func (t *table) remove(id int64, before record) {
	t.unindex(len(t.indexes), id, before.doc)
	t.records.Delete(id)
	t.bytes -= int64(len(before.doc))
}

// unindex takes a document out of the first n indexes.
func (t *table) unindex(n int, id int64, doc bson.Raw) {
	for _, ix := range t.indexes[:n] {
		ix.remove(id, doc)
	}
}

// indexNamed returns nil if there is none.
func (t *table) indexNamed(name string) *index {
	for _, ix := range t.indexes {
		if ix.spec.Name == name {
			return ix
		}
	}
	return nil
}

// addIndex builds an index over the documents that are there.
func (t *table) addIndex(spec IndexSpec) error {
	ix := newIndex(spec)
	var failed error
	t.records.Scan(func(id int64, rec record) bool {
		failed = ix.add(id, rec.doc)
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	t.indexes = append(slices.Clip(t.indexes), ix)
	return nil
}

func (t *table) dropIndex(ix *index) {
	kept := make([]*index, 0, len(t.indexes)-1)
	for _, other := range t.indexes {
		if other != ix {
			kept = append(kept, other)
		}
	}
	t.indexes = kept
}
