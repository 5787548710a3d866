package storage

import (
	"maps"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"
)

// TestTable_IndexesHoldTheKeysOfTheDocuments makes random writes, many of which are
// refused, and after each compares every index with one built anew.
func TestTable_IndexesHoldTheKeysOfTheDocuments(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table := NewTable()
		for _, spec := range []IndexSpec{
			{Name: "a", Fields: []IndexField{{Path: "a"}}, Unique: true},
			{Name: "b", Fields: []IndexField{{Path: "b"}}},
			{Name: "ab", Fields: []IndexField{{Path: "b.x"}, {Path: "a.x", Descending: true}}, Unique: true, Sparse: true},
		} {
			if err := table.AddIndex(spec); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 15).Draw(t, "writes") {
			before := table.Snapshot()
			seen := contentsOf(before)
			err := anyWrite(t, table)
			checkIndexes(t, table)
			if got := contentsOf(before); !maps.Equal(got, seen) {
				t.Fatalf("a snapshot changed: got %v, want %v", got, seen)
			}
			if got := contentsOf(table); err != nil && !maps.Equal(got, seen) {
				t.Fatalf("a refused write (%v) changed the table: got %v, want %v", err, got, seen)
			}
		}
	})
}

func TestTable_InsertRefusesAnIDThatIsTaken(t *testing.T) {
	t.Parallel()
	table := NewTable()
	for i, id := range []string{"first", "second"} {
		raw, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
		noError(t, err)
		if err := table.Insert(1, raw, 1); (err == nil) != (i == 0) {
			t.Errorf("insert of the %s document: got error %v", id, err)
		}
	}
	if got := contentsOf(table)[1]; got != `{"_id": "first"}` || table.Indexes[0].Keys.Len() != 1 {
		t.Errorf("got %s and %d keys, want the first document and its key", got, table.Indexes[0].Keys.Len())
	}
}

func TestIndex_ADocumentHasEachKeyOnce(t *testing.T) {
	t.Parallel()
	const elements = 200_000
	tags := make(bson.A, 0, 2*elements)
	for i := range 2 * elements {
		tags = append(tags, int32(i*7%elements))
	}
	raw, err := bson.Marshal(bson.D{{Key: "_id", Value: 1}, {Key: "tags", Value: tags}})
	noError(t, err)
	ix := newIndex(IndexSpec{Name: "tags", Fields: []IndexField{{Path: "tags"}}})
	keys, multikey, err := ix.keysOf(1, raw)
	noError(t, err)
	distinct := map[string]bool{}
	for _, key := range keys {
		distinct[key] = true
	}
	if len(keys) != elements || len(distinct) != elements || !multikey {
		t.Errorf("got %d keys, %d of them distinct, multikey %t, want %d and true", len(keys), len(distinct), multikey, elements)
	}
	noError(t, ix.add(1, raw))
	if got := ix.Keys.Keys(); !slices.Equal(got, keys) {
		t.Errorf("got %d keys in the index, want the document's", len(got))
	}
	ix.remove(1, raw)
	if got := ix.Keys.Len(); got != 0 {
		t.Errorf("got %d keys once the document is gone, want none", got)
	}
}

func anyWrite(t *rapid.T, table *Table) error {
	id := int64(rapid.IntRange(1, 4).Draw(t, "id"))
	raw, err := bson.Marshal(append(bson.D{{Key: "_id", Value: id}}, anyFields(t, 2, "a", "b")...))
	if err != nil {
		t.Fatal(err)
	}
	before, there := table.Records.Get(id)
	switch {
	case !there:
		return table.Insert(id, raw, 1)
	case rapid.Bool().Draw(t, "remove"):
		table.Remove(id, before)
		return nil
	default:
		return table.Replace(id, before, raw, 2)
	}
}

func contentsOf(t *Table) map[int64]string {
	all := map[int64]string{}
	t.Records.Scan(func(id int64, rec Record) bool {
		all[id] = rec.Doc.String()
		return true
	})
	return all
}

func checkIndexes(t *rapid.T, table *Table) {
	for _, ix := range table.Indexes {
		fresh := newIndex(ix.Spec)
		table.Records.Scan(func(id int64, rec Record) bool {
			if err := fresh.add(id, rec.Doc); err != nil {
				t.Fatalf("index %s: %v", ix.Spec.Name, err)
			}
			return true
		})
		if got, want := ix.Keys.Keys(), fresh.Keys.Keys(); !slices.Equal(got, want) {
			t.Fatalf("index %s: got keys %q, want %q", ix.Spec.Name, got, want)
		}
		if got, want := ix.Keys.Values(), fresh.Keys.Values(); !slices.Equal(got, want) {
			t.Fatalf("index %s: got records %v, want %v", ix.Spec.Name, got, want)
		}
	}
}
