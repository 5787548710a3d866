package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func begin(t testing.TB, e *Engine, number int64) *Txn {
	t.Helper()
	return e.Open(oplog.TxnID{Session: doc(t, "id", number), Number: number})
}

// code is the server's code of an error, 0 for none.
func code(err error) mongoerr.Code {
	if err == nil {
		return 0
	}
	return mongoerr.From(err).Code
}

// TestTransaction_WriteConflicts runs a write of a second transaction after writes of a
// first one and of nobody's.
func TestTransaction_WriteConflicts(t *testing.T) {
	t.Parallel()
	type step func(t *testing.T, e *Engine, w Write) error
	insertKeyed := func(id, key any) step {
		return func(t *testing.T, e *Engine, w Write) error {
			_, err := e.Insert(t.Context(), w, things, []bson.Raw{doc(t, "_id", id, "key", key)})
			return err
		}
	}
	change := func(id any, pairs ...any) step {
		return func(t *testing.T, e *Engine, w Write) error {
			_, err := e.Update(t.Context(), w, things, set(t, id, pairs...))
			return err
		}
	}
	remove := func(id any) step {
		return func(t *testing.T, e *Engine, w Write) error {
			_, err := e.Delete(t.Context(), w, things, Selection{Filter: filter(t, "_id", id)})
			return err
		}
	}
	nothing := func(*testing.T, *Engine, Write) error { return nil }
	for name, c := range map[string]struct {
		outside, first, second step
		want                   mongoerr.Code
	}{
		"two write different documents":            {nothing, change(1, "n", 1), change(2, "n", 1), 0},
		"two update one document":                  {nothing, change(1, "n", 1), change(1, "n", 2), mongoerr.WriteConflict},
		"one deletes what the other updates":       {nothing, remove(1), change(1, "n", 2), mongoerr.WriteConflict},
		"one updates what the other deletes":       {nothing, change(1, "n", 1), remove(1), mongoerr.WriteConflict},
		"two insert one _id":                       {nothing, insertKeyed(9, 9), insertKeyed(9, 10), mongoerr.WriteConflict},
		"two insert one unique key":                {nothing, insertKeyed(9, 9), insertKeyed(10, 9), mongoerr.WriteConflict},
		"two move to one unique key":               {nothing, change(1, "key", 9), change(2, "key", 9), mongoerr.WriteConflict},
		"a document changed since the snapshot":    {change(1, "n", 1), nothing, change(1, "n", 2), mongoerr.WriteConflict},
		"a document deleted since the snapshot":    {remove(1), nothing, change(1, "n", 2), mongoerr.WriteConflict},
		"an _id inserted since the snapshot":       {insertKeyed(9, 9), nothing, insertKeyed(9, 10), mongoerr.WriteConflict},
		"a unique key inserted since the snapshot": {insertKeyed(9, 9), nothing, insertKeyed(10, 9), mongoerr.WriteConflict},
		"a unique key of the snapshot":             {nothing, nothing, insertKeyed(9, 1), mongoerr.DuplicateKey},
		"a unique key freed since the snapshot":    {remove(1), nothing, insertKeyed(9, 1), mongoerr.DuplicateKey},
		"another document changed since":           {change(2, "n", 1), nothing, change(1, "n", 2), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := New(Config{})
			_, err := e.CreateIndexes(t.Context(), nil, things, []storage.IndexSpec{uniqueOn(t, "key")})
			must(t, err)
			e.mustInsert(t, Write{}, doc(t, "_id", 1, "key", 1), doc(t, "_id", 2, "key", 2))
			first, second := begin(t, e, 1), begin(t, e, 2)
			must(t, c.outside(t, e, Write{}))
			must(t, c.first(t, e, Write{Txn: first}))
			if got := code(c.second(t, e, Write{Txn: second})); got != c.want {
				t.Errorf("got code %v, want %v", got, c.want)
			}
			must(t, first.Commit())
			second.Abort()
		})
	}
}

func TestTransaction_ATransactionFreesAndTakesAKeyAgain(t *testing.T) {
	t.Parallel()
	e := New(Config{})
	e.mustInsert(t, Write{}, doc(t, "_id", 1, "v", "old"))
	txn := begin(t, e, 1)
	w := Write{Txn: txn}
	_, err := e.Delete(t.Context(), w, things, Selection{Filter: filter(t, "_id", 1)})
	must(t, err)
	e.mustInsert(t, w, doc(t, "_id", 1, "v", "new"))
	must(t, txn.Commit())
	want := []string{doc(t, "_id", 1, "v", "new").String()}
	if got := e.contents(t, nil, things); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestTransaction_AWriteWaitsForTheTransactionInItsWay lets writes outside a transaction
// meet what it has written, and ends it.
func TestTransaction_AWriteWaitsForTheTransactionInItsWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		inside  func(t *testing.T, e *Engine, w Write)
		outside func(t *testing.T, e *Engine) error
		commit  bool
		want    mongoerr.Code
	}{
		"an update of a document that an aborted transaction wrote": {
			updatesOne, func(t *testing.T, e *Engine) error {
				_, err := e.Update(t.Context(), Write{}, things, set(t, 1, "n", 7))
				return err
			}, false, 0,
		},
		"an insert of an _id that a transaction then commits": {
			insertsNine, func(t *testing.T, e *Engine) error {
				_, err := e.Insert(t.Context(), Write{}, things, []bson.Raw{doc(t, "_id", 9)})
				return err
			}, true, mongoerr.DuplicateKey,
		},
		"an insert of an _id that a transaction then does not commit": {
			insertsNine, func(t *testing.T, e *Engine) error {
				_, err := e.Insert(t.Context(), Write{}, things, []bson.Raw{doc(t, "_id", 9)})
				return err
			}, false, 0,
		},
		"an insert of an _id that a transaction frees": {
			func(t *testing.T, e *Engine, w Write) {
				_, err := e.Delete(t.Context(), w, things, Selection{Filter: filter(t, "_id", 1)})
				must(t, err)
			}, func(t *testing.T, e *Engine) error {
				_, err := e.Insert(t.Context(), Write{}, things, []bson.Raw{doc(t, "_id", 1)})
				return err
			}, true, 0,
		},
		"a drop of the collection": {
			updatesOne, func(t *testing.T, e *Engine) error {
				_, err := e.Drop(t.Context(), things)
				return err
			}, true, 0,
		},
		"a deletion of all documents": {
			updatesOne, func(t *testing.T, e *Engine) error {
				_, err := e.Delete(t.Context(), Write{}, things, Selection{Filter: filter(t), Multi: true})
				return err
			}, true, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := New(Config{})
				e.mustInsert(t, Write{}, doc(t, "_id", 1, "n", 0), doc(t, "_id", 2))
				txn := begin(t, e, 1)
				c.inside(t, e, Write{Txn: txn})
				done := make(chan error, 1)
				go func() { done <- c.outside(t, e) }()
				synctest.Wait()
				select {
				case err := <-done:
					t.Fatalf("got %v before the end of the transaction, want the write to wait", err)
				default:
				}
				if c.commit {
					must(t, txn.Commit())
				} else {
					txn.Abort()
				}
				if got := code(<-done); got != c.want {
					t.Errorf("got code %v, want %v", got, c.want)
				}
			})
		})
	}
}

func updatesOne(t *testing.T, e *Engine, w Write) {
	_, err := e.Update(t.Context(), w, things, set(t, 1, "n", 5))
	must(t, err)
}

func insertsNine(t *testing.T, e *Engine, w Write) { e.mustInsert(t, w, doc(t, "_id", 9)) }

// TestTransaction_AnIndexThatIsThereWaitsForNoTransaction asks for indexes while a transaction
// is open whose client may be gone for good.
func TestTransaction_AnIndexThatIsThereWaitsForNoTransaction(t *testing.T) {
	t.Parallel()
	e := New(Config{})
	_, err := e.CreateIndexes(t.Context(), nil, things, []storage.IndexSpec{uniqueOn(t, "key")})
	must(t, err)
	txn := begin(t, e, 1)
	defer txn.Abort()
	e.mustInsert(t, Write{Txn: txn}, doc(t, "_id", 1, "key", 1))
	over, end := context.WithCancel(t.Context())
	end() // nothing can be waited for
	built, err := e.CreateIndexes(over, nil, things, []storage.IndexSpec{uniqueOn(t, "key")})
	if err != nil || built.Before != built.After {
		t.Errorf("one that is there: got %+v and error %v, want nothing built and no wait", built, err)
	}
	other := uniqueOn(t, "other")
	other.Name = "other"
	if _, err := e.CreateIndexes(over, nil, things, []storage.IndexSpec{uniqueOn(t, "key"), other}); !errors.Is(err, context.Canceled) {
		t.Errorf("one that is not: got %v, want a wait for the transaction", err)
	}
}

func TestTransaction_AWaitingWriteEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{})
		e.mustInsert(t, Write{}, doc(t, "_id", 1))
		txn := begin(t, e, 1)
		updatesOne(t, e, Write{Txn: txn})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.Update(ctx, Write{}, things, set(t, 1, "n", 7)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		txn.Abort()
	})
}

// TestTransaction_AMultiUpdateGoesOnWhereItWasBlocked counts how often each document is
// changed when the statement meets a transaction half way.
func TestTransaction_AMultiUpdateGoesOnWhereItWasBlocked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{})
		e.mustInsert(t, Write{}, doc(t, "_id", 1, "n", 0), doc(t, "_id", 2, "n", 0), doc(t, "_id", 3, "n", 0))
		txn := begin(t, e, 1)
		_, err := e.Update(t.Context(), Write{Txn: txn}, things, set(t, 2, "n", 100))
		must(t, err)
		u := updateOf(t, filter(t), doc(t, "$inc", doc(t, "n", 1)))
		u.Multi = true
		done := make(chan Result, 1)
		go func() {
			result, err := e.Update(t.Context(), Write{}, things, u)
			if err != nil {
				t.Error(err)
			}
			done <- result
		}()
		synctest.Wait()
		must(t, txn.Commit())
		if got := <-done; got.Matched != 3 || got.Modified != 3 {
			t.Errorf("got %d matched, %d modified, want 3 and 3", got.Matched, got.Modified)
		}
		want := []string{
			doc(t, "_id", 1, "n", 1).String(), doc(t, "_id", 2, "n", 101).String(), doc(t, "_id", 3, "n", 1).String(),
		}
		if got := e.contents(t, nil, things); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestTransaction_AnOldTransactionIsAborted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{TransactionLifetime: 10 * time.Second})
		stop := running(t, e)
		defer stop()
		e.mustInsert(t, Write{}, doc(t, "_id", 1, "n", 0))
		txn := begin(t, e, 1)
		updatesOne(t, e, Write{Txn: txn})
		began := time.Now()
		_, err := e.Update(t.Context(), Write{}, things, set(t, 1, "n", 7))
		must(t, err)
		if waited := time.Since(began); waited < 9*time.Second || waited > 12*time.Second {
			t.Errorf("got the write after %s, want it after the transaction's 10 s", waited)
		}
		if err := txn.Commit(); !mongoerr.Is(err, mongoerr.NoSuchTransaction) {
			t.Errorf("got %v, want NoSuchTransaction", err)
		}
	})
}

// running runs the engine in the test's bubble until stop is called.
func running(t testing.TB, e *Engine) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	return func() {
		cancel()
		must(t, <-done)
	}
}

func TestTransaction_ATransactionSeesOneMomentOfAllCollections(t *testing.T) {
	t.Parallel()
	e := New(Config{})
	others := oplog.Namespace{DB: "test", Collection: "others"}
	e.mustInsert(t, Write{}, doc(t, "_id", 1))
	_, err := e.Insert(t.Context(), Write{}, others, []bson.Raw{doc(t, "_id", 1)})
	must(t, err)
	txn := begin(t, e, 1)
	e.mustInsert(t, Write{}, doc(t, "_id", 2))
	_, err = e.Drop(t.Context(), others)
	must(t, err)
	for _, ns := range []oplog.Namespace{things, others} {
		want := []string{doc(t, "_id", 1).String()}
		if got := e.contents(t, txn, ns); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", ns, got, want)
		}
	}
	if _, err := e.Insert(t.Context(), Write{Txn: txn}, others, []bson.Raw{doc(t, "_id", 5)}); !mongoerr.Is(err, mongoerr.WriteConflict) {
		t.Errorf("insert into a dropped collection: got %v, want WriteConflict", err)
	}
	txn.Abort()
}

func TestTransaction_ATransactionMakesACollection(t *testing.T) {
	t.Parallel()
	e := New(Config{})
	txn := begin(t, e, 1)
	e.mustInsert(t, Write{Txn: txn}, doc(t, "_id", 1))
	if got := e.Collections("test"); len(got) != 0 {
		t.Errorf("before the commit: got %v, want no collections", got)
	}
	other := begin(t, e, 2)
	if err := e.CreateCollection(t.Context(), other, things, CollectionOptions{}); !mongoerr.Is(err, mongoerr.WriteConflict) {
		t.Errorf("a second maker: got %v, want WriteConflict", err)
	}
	other.Abort()
	must(t, txn.Commit())
	want := []string{doc(t, "_id", 1).String()}
	if got := e.contents(t, nil, things); !slices.Equal(got, want) {
		t.Errorf("after the commit: got %v, want %v", got, want)
	}
}

// What a transaction has seen under a name is no longer there to be written to.
func TestTransaction_ATransactionConflictsWithARename(t *testing.T) {
	t.Parallel()
	elsewhere := oplog.Namespace{DB: "test", Collection: "elsewhere"}
	for name, write := range map[string]func(e *Engine, w Write) error{
		"an insert": func(e *Engine, w Write) error {
			_, err := e.Insert(t.Context(), w, things, []bson.Raw{doc(t, "_id", 9)})
			return err
		},
		"an update": func(e *Engine, w Write) error {
			_, err := e.Update(t.Context(), w, things, set(t, 1, "n", 1))
			return err
		},
		"a removal": func(e *Engine, w Write) error {
			_, err := e.Delete(t.Context(), w, things, Selection{Filter: filter(t, "_id", 1)})
			return err
		},
	} {
		e := New(Config{})
		e.mustInsert(t, Write{}, doc(t, "_id", 1))
		txn := begin(t, e, 1)
		must(t, e.Rename(t.Context(), things, elsewhere, false))
		if got := code(write(e, Write{Txn: txn})); got != mongoerr.WriteConflict || e.Broken() {
			t.Errorf("%s: got code %d, want WriteConflict", name, got)
		}
		txn.Abort()
	}
}

// It may end by its age, or by its session's end, while a command runs in it.
func TestTransaction_NoStatementOfATransactionThatHasEndedFindsNothing(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]func(e *Engine, txn *Txn) error{
		"a read": func(e *Engine, txn *Txn) error {
			_, err := e.View(txn, things)
			return err
		},
		"an update": func(e *Engine, txn *Txn) error {
			_, err := e.Update(t.Context(), Write{Txn: txn}, things, set(t, 1, "n", 1))
			return err
		},
		"a removal": func(e *Engine, txn *Txn) error {
			_, err := e.Delete(t.Context(), Write{Txn: txn}, things, Selection{Filter: filter(t, "_id", 1)})
			return err
		},
	} {
		e := New(Config{})
		e.mustInsert(t, Write{}, doc(t, "_id", 1))
		txn := begin(t, e, 1)
		must(t, statement(e, txn))
		e.AbortTransactions()
		if got := code(statement(e, txn)); got != mongoerr.NoSuchTransaction {
			t.Errorf("%s: got code %d, want NoSuchTransaction", name, got)
		}
	}
}

// A commit stores what the transaction has written without asking anew, so an index that the
// transaction does not know must not refuse it then.
func TestTransaction_ATransactionConflictsWithAChangeOfIndexes(t *testing.T) {
	t.Parallel()
	indexed := func(pairs ...any) func(e *Engine) error {
		spec, err := storage.NewIndexSpec(doc(t, pairs...))
		must(t, err)
		return func(e *Engine) error {
			_, err := e.CreateIndexes(t.Context(), nil, things, []storage.IndexSpec{spec})
			return err
		}
	}
	for name, change := range map[string]func(e *Engine) error{
		"a unique index":            indexed("name", "new", "key", doc(t, "n", 1), "unique", true),
		"a hashed index":            indexed("name", "new", "key", doc(t, "list", "hashed")),
		"an index on two fields":    indexed("name", "new", "key", doc(t, "list", 1, "other", 1)),
		"an index that was dropped": func(e *Engine) error { return dropIndex(t, e, "unique") },
	} {
		e := New(Config{})
		_, err := e.CreateIndexes(t.Context(), nil, things, []storage.IndexSpec{uniqueOn(t, "key")})
		must(t, err)
		e.mustInsert(t, Write{}, doc(t, "_id", 1, "n", 1))
		txn := begin(t, e, 1)
		must(t, change(e))
		added := doc(t, "_id", 2, "n", 1, "key", 2, "list", bson.A{1}, "other", bson.A{2})
		_, err = e.Insert(t.Context(), Write{Txn: txn}, things, []bson.Raw{added})
		if got := mongoerr.From(err); err == nil || got.Code != mongoerr.SnapshotUnavailable ||
			!slices.Contains(got.Labels, "TransientTransactionError") {
			t.Errorf("%s: got %v, want a transient SnapshotUnavailable", name, err)
		}
		txn.Abort()
		later := begin(t, e, 2)
		e.mustInsert(t, Write{Txn: later}, doc(t, "_id", 3, "n", 3, "key", 3))
		must(t, later.Commit())
	}
}

func dropIndex(t *testing.T, e *Engine, name string) error {
	t.Helper()
	_, err := e.DropIndexes(t.Context(), things, func([]storage.IndexSpec) ([]string, error) { return []string{name}, nil })
	return err
}

// Otherwise the commit would put an empty collection in the place of the renamed.
func TestTransaction_ARenameWaitsForTheTransactionThatMakesItsTarget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		elsewhere := oplog.Namespace{DB: "test", Collection: "elsewhere"}
		e := New(Config{})
		e.mustInsert(t, Write{}, doc(t, "_id", 1))
		txn := begin(t, e, 1)
		must(t, e.CreateCollection(t.Context(), txn, elsewhere, CollectionOptions{}))
		renamed := make(chan error, 1)
		go func() { renamed <- e.Rename(t.Context(), things, elsewhere, false) }()
		synctest.Wait()
		must(t, txn.Commit())
		if got := code(<-renamed); got != mongoerr.NamespaceExists {
			t.Errorf("got code %d, want NamespaceExists", got)
		}
		if got := e.contents(t, nil, things); len(got) != 1 {
			t.Errorf("got %v, want the document of the collection that was to be renamed", got)
		}
	})
}
