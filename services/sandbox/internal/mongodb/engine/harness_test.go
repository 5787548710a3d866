package engine

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/match"
	"changerelay/services/sandbox/internal/mongodb/query/modify"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

var things = oplog.Namespace{DB: "test", Collection: "things"}

// doc builds a document from names and values.
func doc(t testing.TB, pairs ...any) bson.Raw {
	t.Helper()
	d := bson.D{}
	for i := 0; i < len(pairs); i += 2 {
		d = append(d, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	raw, err := bson.Marshal(d)
	must(t, err)
	return raw
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func filter(t testing.TB, pairs ...any) *match.Filter {
	t.Helper()
	f, err := match.Compile(doc(t, pairs...), expression.Env{})
	must(t, err)
	return f
}

// updateOf makes a statement for one document out of a filter and an update.
func updateOf(t testing.TB, f *match.Filter, change bson.Raw) Update {
	t.Helper()
	u, err := modify.Compile(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: change}, modify.Options{})
	must(t, err)
	return Update{
		Selection: Selection{Filter: f},
		Apply:     func(doc bson.Raw) (modify.Applied, error) { return u.Apply(doc, f) },
	}
}

// pipelineOf is an update by a pipeline, told as since 5.0.
func pipelineOf(t testing.TB, f *match.Filter, pipeline string) Update {
	t.Helper()
	u, err := modify.Compile(querytest.Value(t, pipeline), modify.Options{SinceFive: true})
	must(t, err)
	return Update{
		Selection: Selection{Filter: f},
		Apply:     func(doc bson.Raw) (modify.Applied, error) { return u.Apply(doc, f) },
	}
}

// set is an update of one document by its _id.
func set(t testing.TB, id any, pairs ...any) Update {
	t.Helper()
	return updateOf(t, filter(t, "_id", id), doc(t, "$set", doc(t, pairs...)))
}

func (e *Engine) mustInsert(t testing.TB, w Write, docs ...bson.Raw) {
	t.Helper()
	_, err := e.Insert(t.Context(), w, things, docs)
	must(t, err)
}

// contents are the documents of a collection, in natural order.
func (e *Engine) contents(t testing.TB, txn *Txn, ns oplog.Namespace) []string {
	t.Helper()
	view, err := e.View(txn, ns)
	must(t, err)
	docs, err := view.Documents(filter(t), nil, storage.Hint{})
	must(t, err)
	var all []string
	for {
		doc, err := docs.Next()
		must(t, err)
		if doc == nil {
			return all
		}
		all = append(all, doc.String())
	}
}

func uniqueOn(t testing.TB, paths ...string) storage.IndexSpec {
	t.Helper()
	key := bson.D{}
	for _, path := range paths {
		key = append(key, bson.E{Key: path, Value: 1})
	}
	spec, err := storage.NewIndexSpec(doc(t, "name", "unique", "key", key, "unique", true))
	must(t, err)
	return spec
}

// docs makes documents of _ids.
func docs(t testing.TB, ids ...int) []bson.Raw {
	t.Helper()
	var all []bson.Raw
	for _, id := range ids {
		all = append(all, doc(t, "_id", id))
	}
	return all
}
