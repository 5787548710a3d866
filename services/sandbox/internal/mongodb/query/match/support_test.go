package match_test

import (
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// matching lists the _ids of the documents that match.
func matching(t testing.TB, f *match.Filter, docs []bson.Raw) string {
	t.Helper()
	var ids []string
	for _, doc := range docs {
		ok, err := f.Match(doc)
		if err != nil {
			t.Fatalf("match %s: %v", doc, err)
		}
		if ok {
			id, _ := bsonkit.Get(doc, "_id")
			ids = append(ids, bsonkit.Describe(id))
		}
	}
	slices.Sort(ids)
	return strings.NewReplacer(`{"$numberInt":"`, "", `"}`, "").Replace(strings.Join(ids, " "))
}
