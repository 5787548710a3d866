package storage

import (
	"fmt"
	"slices"

	"github.com/tidwall/btree"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Record is a stored document with the number of the write that stored it.
// The number tells a transaction whether the record changed after its snapshot.
type Record struct {
	Doc   bson.Raw
	Write uint64
}

// Table holds the documents of one collection with their indexes. It does no
// locking: the owner of a table, the engine or a transaction, is its only
// writer, and readers use a snapshot.
type Table struct {
	Records *btree.Map[int64, Record]
	// Indexes begins with the index on _id.
	Indexes []*Index
	Bytes   int64
}

// NewTable makes a table with the index on _id.
func NewTable() *Table {
	return &Table{Records: new(btree.Map[int64, Record]), Indexes: []*Index{newIndex(idIndexSpec())}}
}

// Snapshot returns a table with the same contents that later writes to t do not
// reach, nor the other way round. It takes time by the number of indexes, not
// of documents, and must not run beside a write or another snapshot of t.
func (t *Table) Snapshot() *Table {
	s := &Table{Records: t.Records.IsoCopy(), Indexes: make([]*Index, len(t.Indexes)), Bytes: t.Bytes}
	for i, ix := range t.Indexes {
		s.Indexes[i] = ix.snapshot()
	}
	return s
}

// Insert stores a new document under an id that no other has. It changes nothing
// when it returns an error.
func (t *Table) Insert(id int64, doc bson.Raw, write uint64) error {
	if _, taken := t.Records.Get(id); taken {
		return fmt.Errorf("record %d is there already", id)
	}
	for i, ix := range t.Indexes {
		if err := ix.add(id, doc); err != nil {
			t.unindex(i, id, doc)
			return err
		}
	}
	t.Records.Set(id, Record{Doc: doc, Write: write})
	t.Bytes += int64(len(doc))
	return nil
}

// Replace stores another version of a document. It changes nothing when it
// returns an error.
func (t *Table) Replace(id int64, before Record, doc bson.Raw, write uint64) error {
	for i, ix := range t.Indexes {
		if err := ix.move(id, before.Doc, doc); err != nil {
			for _, done := range t.Indexes[:i] {
				// Moving back puts keys where they were a moment ago: they are free.
				_ = done.move(id, doc, before.Doc)
			}
			return err
		}
	}
	t.Records.Set(id, Record{Doc: doc, Write: write})
	t.Bytes += int64(len(doc) - len(before.Doc))
	return nil
}

// Remove deletes a document.
func (t *Table) Remove(id int64, before Record) {
	t.unindex(len(t.Indexes), id, before.Doc)
	t.Records.Delete(id)
	t.Bytes -= int64(len(before.Doc))
}

// unindex takes a document out of the first n indexes.
func (t *Table) unindex(n int, id int64, doc bson.Raw) {
	for _, ix := range t.Indexes[:n] {
		ix.remove(id, doc)
	}
}

// IndexNamed returns nil if there is none.
func (t *Table) IndexNamed(name string) *Index {
	for _, ix := range t.Indexes {
		if ix.Spec.Name == name {
			return ix
		}
	}
	return nil
}

// AddIndex builds an index over the documents that are there.
func (t *Table) AddIndex(spec IndexSpec) error {
	ix := newIndex(spec)
	var failed error
	t.Records.Scan(func(id int64, rec Record) bool {
		failed = ix.add(id, rec.Doc)
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	t.Indexes = append(slices.Clip(t.Indexes), ix)
	return nil
}

// DropIndex takes one of the table's indexes away.
func (t *Table) DropIndex(ix *Index) {
	kept := make([]*Index, 0, len(t.Indexes)-1)
	for _, other := range t.Indexes {
		if other != ix {
			kept = append(kept, other)
		}
	}
	t.Indexes = kept
}
