package engine

import (
	"maps"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"
)

// TestIndexesHoldTheKeysOfTheDocuments makes random writes, many of which are
// refused, and after each compares every index with one built anew.
func TestIndexesHoldTheKeysOfTheDocuments(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table := newTable()
		for _, spec := range []IndexSpec{
			{Name: "a", Fields: []IndexField{{Path: "a"}}, Unique: true},
			{Name: "b", Fields: []IndexField{{Path: "b"}}},
			{Name: "ab", Fields: []IndexField{{Path: "b.x"}, {Path: "a.x", Descending: true}}, Unique: true, Sparse: true},
		} {
			if err := table.addIndex(spec); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 15).Draw(t, "writes") {
			before := table.snapshot()
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

func anyWrite(t *rapid.T, table *table) error {
	id := int64(rapid.IntRange(1, 4).Draw(t, "id"))
	raw, err := bson.Marshal(append(bson.D{{Key: "_id", Value: id}}, anyFields(t, 2, "a", "b")...))
	if err != nil {
		t.Fatal(err)
	}
	before, there := table.records.Get(id)
	switch {
	case !there:
		return table.insert(id, raw, 1)
	case rapid.Bool().Draw(t, "remove"):
		table.remove(id, before)
		return nil
	default:
		return table.replace(id, before, raw, 2)
	}
}

func contentsOf(t *table) map[int64]string {
	all := map[int64]string{}
	t.records.Scan(func(id int64, rec record) bool {
		all[id] = rec.doc.String()
		return true
	})
	return all
}

func checkIndexes(t *rapid.T, table *table) {
	for _, ix := range table.indexes {
		fresh := newIndex(ix.spec)
		table.records.Scan(func(id int64, rec record) bool {
			if err := fresh.add(id, rec.doc); err != nil {
				t.Fatalf("index %s: %v", ix.spec.Name, err)
			}
			return true
		})
		if got, want := ix.keys.Keys(), fresh.keys.Keys(); !slices.Equal(got, want) {
			t.Fatalf("index %s: got keys %q, want %q", ix.spec.Name, got, want)
		}
		if got, want := ix.keys.Values(), fresh.keys.Values(); !slices.Equal(got, want) {
			t.Fatalf("index %s: got records %v, want %v", ix.spec.Name, got, want)
		}
	}
}
