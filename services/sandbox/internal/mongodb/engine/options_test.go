package engine

import (
	"fmt"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestOptions_OptionsOutliveTheProcess shows that what a collection keeps and drops by
// its options is the same when its journal is done again, change by change and
// out of a picture.
func TestOptions_OptionsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	for name, listed := range map[string]bson.Raw{
		"capped":    doc(t, "capped", true, "size", 4096, "max", 2),
		"images":    doc(t, "changeStreamPreAndPostImages", doc(t, "enabled", true)),
		"collation": doc(t, "collation", doc(t, "locale", "en", "strength", 2)),
	} {
		for _, compacted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, compacted %t", name, compacted), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				e, j := recovered(t, dir)
				options, err := NewCollectionOptions(listed)
				must(t, err)
				must(t, e.CreateCollection(t.Context(), nil, things, options))
				e.mustInsert(t, Write{}, doc(t, "_id", "a", "n", int32(0)), doc(t, "_id", "b", "n", int32(0)), doc(t, "_id", "c", "n", int32(0)))
				_, err = e.Update(t.Context(), Write{}, things, set(t, "c", "n", int32(1)))
				must(t, err)
				want, images := e.state(t), e.images()
				if compacted {
					must(t, e.compact())
				}
				must(t, j.Close())
				e, j = recovered(t, dir)
				if got := withoutLast(e.state(t), len(e.kept)); !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
				if got := e.images(); !slices.Equal(got, images) || (len(got) > 0) != (name == "images") {
					t.Errorf("got images %q, want %q", got, images)
				}
				_, err = e.Insert(t.Context(), Write{}, things, []bson.Raw{doc(t, "_id", "C")})
				if refused := err != nil; refused != (name == "collation") {
					t.Errorf("insert of a second c: got %v", err)
				}
				_, err = e.Delete(t.Context(), Write{}, things, Selection{Filter: filter(t, "_id", "a")})
				if refused := err != nil; refused != (name == "capped") {
					t.Errorf("delete: got %v", err)
				}
				must(t, j.Close())
			})
		}
	}
}

// images are the pre- and post-images that the oplog holds.
func (e *Engine) images() []string {
	entries, _ := e.oplog.ReadOldest(nil, 0, e.end, 1000)
	var all []string
	for _, entry := range entries {
		if entry.Before != nil || entry.After != nil {
			all = append(all, entry.Before.String()+entry.After.String())
		}
	}
	return all
}
