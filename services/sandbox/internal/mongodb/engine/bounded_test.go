package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/journal"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// A record that is larger than the journal's bound would end the engine.
func TestJournal_RecordsAreBounded(t *testing.T) {
	t.Parallel()
	const size, fields = 1 << 20, 10_000
	name := strings.Repeat("n", 10_000)
	multi := updateOf(t, filter(t), doc(t, "$set", doc(t, "changed", true)))
	multi.Multi = true
	once := func(e *Engine, w Write) error {
		_, err := e.Update(t.Context(), w, things, multi)
		return err
	}
	for _, c := range []struct {
		name  string
		write func(e *Engine) error
		want  mongoerr.Code
		most  int
	}{
		{"an update of many documents", func(e *Engine) error { return once(e, Write{}) }, 0, batchBytes + 4*size},
		{"a deletion of many documents", func(e *Engine) error {
			_, err := e.Delete(t.Context(), Write{}, things, multi.Selection)
			return err
		}, 0, batchBytes + 4*size},
		{"an expiry of many documents", func(e *Engine) error {
			e.expireDocuments(t.Context())
			return nil
		}, 0, batchBytes + 4*size},
		{"a pipeline that removes many fields from below a long name", func(e *Engine) error {
			must(t, once(e, Write{}))
			e.mustInsert(t, Write{}, below(t, name, fields, size/2))
			_, err := e.Update(t.Context(), Write{}, things, pipelineOf(t, filter(t, "_id", "below"),
				`[{"$replaceWith":{"`+name+`":{"pad":"$`+name+`.pad"},"changed":true}}]`))
			return err
		}, 0, batchBytes + 4*size},
		{"many elements that are pushed to an array with a long name", func(e *Engine) error {
			must(t, once(e, Write{}))
			e.mustInsert(t, Write{}, doc(t, "_id", "pushed", name, bson.A{0}))
			_, err := e.Update(t.Context(), Write{}, things, updateOf(t, filter(t, "_id", "pushed"),
				doc(t, "$push", doc(t, name, doc(t, "$each", make([]int, fields))), "$set", doc(t, "changed", true))))
			return err
		}, 0, batchBytes + 4*size},
		{"a transaction", func(e *Engine) error {
			txn := begin(t, e, 1)
			defer txn.Abort()
			must(t, once(e, Write{Txn: txn}))
			return txn.Commit()
		}, 0, maxTransaction},
		{"a transaction that is too large", func(e *Engine) error {
			txn := begin(t, e, 1)
			defer txn.Abort()
			must(t, once(e, Write{Txn: txn}))
			_, err := e.Delete(t.Context(), Write{Txn: txn}, things, multi.Selection)
			return err
		}, mongoerr.TransactionTooLarge, maxTransaction},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			j := &fakeJournal{}
			e, err := Recover(Config{}, func(func([]byte) error) (Journal, error) { return j, nil })
			must(t, err)
			must(t, e.CreateCollection(t.Context(), nil, things, CollectionOptions{Images: true}))
			_, err = e.CreateIndexes(t.Context(), nil, things, []storage.IndexSpec{ttlOn("at", 0, false)})
			must(t, err)
			text := strings.Repeat("-", size)
			for id := range 40 {
				e.mustInsert(t, Write{}, doc(t, "_id", id, "at", time.Unix(0, 0), "text", text, "changed", false))
			}
			if got := code(c.write(e)); got != c.want {
				t.Errorf("got code %d, want %d", got, c.want)
			}
			if j.largest > c.most || c.most > journal.MaxRecord/2 {
				t.Errorf("got a record of %d bytes, want at most %d, and that at most half of the journal's bound", j.largest, c.most)
			}
			view, err := e.View(nil, things)
			must(t, err)
			left, err := view.Documents(filter(t, "changed", false), nil, storage.Hint{})
			must(t, err)
			if doc, err := left.Next(); err != nil || doc != nil && c.want == 0 {
				t.Errorf("got a document of %d bytes and error %v, want all changed or gone", len(doc), err)
			}
			e.mustInsert(t, Write{}, doc(t, "_id", "the next"))
		})
	}
}

// below is a document of which a field has many fields, and a text of pad bytes behind them.
func below(t testing.TB, name string, fields, pad int) bson.Raw {
	t.Helper()
	var inner bson.D
	for i := range fields {
		inner = append(inner, bson.E{Key: fmt.Sprint("f", i), Value: 1})
	}
	return doc(t, "_id", "below", name, append(inner, bson.E{Key: "pad", Value: strings.Repeat("-", pad)}))
}
