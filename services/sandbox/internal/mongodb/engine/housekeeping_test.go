package engine

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/engine/storage"
)

func ttlOn(path string, after int32, descending bool) storage.IndexSpec {
	return storage.IndexSpec{
		Name: "ttl", Fields: []storage.IndexField{{Path: path, Descending: descending}}, ExpireAfter: &after,
	}
}

func TestHousekeeping_ExpiredDocumentsAreDeleted(t *testing.T) {
	t.Parallel()
	for name, descending := range map[string]bool{"by an ascending index": false, "by a descending index": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := New(Config{TTLInterval: time.Minute})
				stop := running(t, e)
				defer stop()
				_, err := e.CreateIndexes(t.Context(), nil, things, []storage.IndexSpec{ttlOn("at", 90, descending)})
				must(t, err)
				now := time.Now()
				e.mustInsert(t, Write{},
					doc(t, "_id", "expires at 90 s", "at", now),
					doc(t, "_id", "expires at 150 s", "at", now.Add(time.Minute)),
					doc(t, "_id", "earliest of several", "at", bson.A{now.Add(time.Hour), now}),
					doc(t, "_id", "no date", "at", "soon"),
					doc(t, "_id", "nothing"),
					doc(t, "_id", "before 1970", "at", time.Unix(-1000, 0)),
				)
				for _, c := range []struct {
					at   time.Duration
					want []string
				}{
					{59 * time.Second, []string{"expires at 90 s", "expires at 150 s", "earliest of several", "no date", "nothing", "before 1970"}},
					{61 * time.Second, []string{"expires at 90 s", "expires at 150 s", "earliest of several", "no date", "nothing"}},
					{121 * time.Second, []string{"expires at 150 s", "no date", "nothing"}},
					{181 * time.Second, []string{"no date", "nothing"}},
				} {
					time.Sleep(c.at - time.Since(now))
					synctest.Wait()
					if got := ids(t, e); !slices.Equal(got, c.want) {
						t.Errorf("after %s: got %q, want %q", c.at, got, c.want)
					}
				}
			})
		})
	}
}

func ids(t testing.TB, e *Engine) []string {
	t.Helper()
	view, err := e.View(nil, things)
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
		all = append(all, doc.Lookup("_id").StringValue())
	}
}

func TestHousekeeping_ExpiryLeavesWhatATransactionHasWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{TTLInterval: time.Second, TransactionLifetime: time.Hour})
		stop := running(t, e)
		defer stop()
		_, err := e.CreateIndexes(t.Context(), nil, things, []storage.IndexSpec{ttlOn("at", 0, false)})
		must(t, err)
		soon := time.Now().Add(time.Minute)
		for i := range ttlBatch + 10 {
			e.mustInsert(t, Write{}, doc(t, "_id", fmt.Sprint("claimed ", i), "at", soon))
		}
		e.mustInsert(t, Write{}, doc(t, "_id", "free", "at", soon))
		txn := begin(t, e, 1)
		claim := updateOf(t, filter(t, "_id", doc(t, "$ne", "free")), doc(t, "$set", doc(t, "n", 1)))
		claim.Multi = true
		_, err = e.Update(t.Context(), Write{Txn: txn}, things, claim)
		must(t, err)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := ids(t, e); len(got) != ttlBatch+10 || slices.Contains(got, "free") {
			t.Errorf("during the transaction: got %d documents, want the %d that it has written to", len(got), ttlBatch+10)
		}
		must(t, txn.Commit())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := ids(t, e); len(got) != 0 {
			t.Errorf("after the commit: got %q, want nothing", got)
		}
	})
}

func TestHousekeeping_TheTTLIntervalCanBeChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{TTLInterval: time.Hour})
		stop := running(t, e)
		defer stop()
		_, err := e.CreateIndexes(t.Context(), nil, things, []storage.IndexSpec{ttlOn("at", 0, false)})
		must(t, err)
		e.mustInsert(t, Write{}, doc(t, "_id", "old", "at", time.Now()))
		e.SetTTLInterval(time.Second)
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if got := ids(t, e); len(got) != 0 {
			t.Errorf("got %q, want nothing", got)
		}
	})
}

func TestHousekeeping_AnIdleOplogMovesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{NoopInterval: 10 * time.Second})
		stop := running(t, e)
		defer stop()
		stream, err := e.Watch(StreamOptions{})
		must(t, err)
		_, err = stream.Next()
		must(t, err)
		before := stream.Place()
		time.Sleep(15 * time.Second)
		_, err = stream.Next()
		must(t, err)
		if after := stream.Place(); after.Compare(before) <= 0 {
			t.Errorf("got place %s after 15 idle seconds, want one after %s", after, before)
		}
	})
}

func TestHousekeeping_AnIdleSessionIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{SessionTimeout: time.Minute, TransactionLifetime: time.Hour})
		stop := running(t, e)
		defer stop()
		e.mustInsert(t, Write{}, doc(t, "_id", 1, "n", 0))
		idle, err := e.CheckOut(t.Context(), []byte("idle"))
		must(t, err)
		txn, err := idle.StartTransaction(1)
		must(t, err)
		updatesOne(t, e, Write{Txn: txn})
		idle.CheckIn()
		busy, err := e.CheckOut(t.Context(), []byte("busy"))
		must(t, err)
		defer busy.CheckIn()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := e.Sessions(); got != 1 {
			t.Errorf("got %d sessions, want the busy one alone", got)
		}
		_, err = e.Update(t.Context(), Write{}, things, set(t, 1, "n", 7))
		must(t, err) // its transaction was aborted, so nothing is in the way
	})
}
