package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// drain gives the events that are there, as "operation _id".
func drain(t testing.TB, s *Stream) []string {
	t.Helper()
	var all []string
	for {
		event, err := s.Next()
		must(t, err)
		if event == nil {
			return all
		}
		all = append(all, describeEvent(event.Doc))
	}
}

func describeEvent(event bson.Raw) string {
	operation := event.Lookup("operationType").StringValue()
	if id, err := event.LookupErr("documentKey", "_id"); err == nil {
		return fmt.Sprint(operation, " ", id.AsInt64())
	}
	return operation
}

func watch(t testing.TB, e *Engine, o StreamOptions) *Stream {
	t.Helper()
	s, err := e.Watch(o)
	must(t, err)
	return s
}

func expect(t testing.TB, s *Stream, want ...string) {
	t.Helper()
	if got := drain(t, s); !slices.Equal(got, want) {
		t.Errorf("got events %q, want %q", got, want)
	}
}

// TestStream_ResumingAtEveryPlace resumes after every event and after every mark of a
// history with transactions in it, and expects exactly the rest.
func TestStream_ResumingAtEveryPlace(t *testing.T) {
	t.Parallel()
	e := New(Config{})
	whole := watch(t, e, StreamOptions{NS: things})
	places := []oplog.ResumeToken{whole.Place()}
	var events []string
	next := 0
	insert := func(w Write) {
		next++
		e.mustInsert(t, w, doc(t, "_id", next))
	}
	look := func() {
		for {
			event, err := whole.Next()
			must(t, err)
			if event == nil {
				break
			}
			events = append(events, describeEvent(event.Doc))
			places = append(places, event.Token)
		}
		places = append(places, whole.Place())
	}
	for round := range 5 {
		insert(Write{})
		txn := begin(t, e, int64(round))
		insert(Write{Txn: txn})
		insert(Write{Txn: txn})
		insert(Write{})
		_, err := e.Delete(t.Context(), Write{Txn: txn}, things, Selection{Filter: filter(t, "_id", next-1)})
		must(t, err)
		must(t, txn.Commit())
		look()
		e.note("something else")
		look()
	}
	if len(events) != 25 {
		t.Fatalf("got %d events, want 25", len(events))
	}
	given := 0
	last := places[0]
	for _, place := range places {
		if place.Compare(last) < 0 {
			t.Errorf("place %s comes after %s, want places in order", place, last)
		}
		if place.Event && place.Compare(last) != 0 {
			given++
		}
		last = place
		if got := drain(t, watch(t, e, StreamOptions{NS: things, Resume: &place})); !slices.Equal(got, events[given:]) {
			t.Errorf("after %s: got %q, want %q", place, got, events[given:])
		}
	}
}

func TestStream_AStreamStartsAtATime(t *testing.T) {
	t.Parallel()
	e := New(Config{})
	e.mustInsert(t, Write{}, doc(t, "_id", 1))
	at := e.OperationTime()
	e.mustInsert(t, Write{}, doc(t, "_id", 2))
	expect(t, watch(t, e, StreamOptions{NS: things, StartAt: at}), "insert 1", "insert 2")
	expect(t, watch(t, e, StreamOptions{NS: things, StartAt: at + 1}), "insert 2")
	expect(t, watch(t, e, StreamOptions{NS: things, StartAt: at + 1000}))
	fresh := watch(t, e, StreamOptions{NS: things})
	place := fresh.Place()
	expect(t, fresh)
	expect(t, watch(t, e, StreamOptions{NS: things, Resume: &place}))
	e.mustInsert(t, Write{}, doc(t, "_id", 3))
	expect(t, watch(t, e, StreamOptions{NS: things, Resume: &place}), "insert 3")
}

func TestStream_AStreamOfTheFutureWaitsForIt(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0) // so that the next write is at the next increment
	e := New(Config{Now: func() time.Time { return now }})
	e.mustInsert(t, Write{}, doc(t, "_id", 0))
	s := watch(t, e, StreamOptions{NS: things, StartAt: e.OperationTime() + 2})
	e.mustInsert(t, Write{}, doc(t, "_id", 1))
	expect(t, s)
	e.mustInsert(t, Write{}, doc(t, "_id", 2))
	expect(t, s, "insert 2")
}

func TestStream_LostHistory(t *testing.T) {
	t.Parallel()
	e := New(Config{OplogEntries: 10})
	s := watch(t, e, StreamOptions{NS: things})
	e.mustInsert(t, Write{}, doc(t, "_id", 0))
	event, err := s.Next()
	must(t, err)
	at := event.Token.Time
	slow := watch(t, e, StreamOptions{NS: things})
	for i := 1; i < 50; i++ {
		e.mustInsert(t, Write{}, doc(t, "_id", i))
	}
	mark := oplog.HighWaterMark(at)
	for name, o := range map[string]StreamOptions{
		"a token":           {NS: things, Resume: &event.Token},
		"a high-water mark": {NS: things, Resume: &mark},
		"a time":            {NS: things, StartAt: at},
	} {
		if _, err := e.Watch(o); !mongoerr.Is(err, mongoerr.ChangeStreamHistoryLost) {
			t.Errorf("%s: got %v, want ChangeStreamHistoryLost", name, err)
		}
	}
	late := watch(t, e, StreamOptions{NS: things, Resume: &event.Token, LateLoss: true})
	if _, err := late.Next(); !mongoerr.Is(err, mongoerr.ChangeStreamFatalError) {
		t.Errorf("the first event of a stream that opens late: got %v, want ChangeStreamFatalError", err)
	}
	elsewhere := oplog.Namespace{DB: "test", Collection: "others"}
	expect(t, watch(t, e, StreamOptions{NS: elsewhere, Resume: &event.Token, LateLoss: true}))
	for name, o := range map[string]StreamOptions{"a high-water mark": {Resume: &mark, LateLoss: true}, "a time": {StartAt: at, LateLoss: true}} {
		if _, err := e.Watch(o); !mongoerr.Is(err, mongoerr.ChangeStreamHistoryLost) {
			t.Errorf("%s where tokens are lost late: got %v, want ChangeStreamHistoryLost", name, err)
		}
	}
	if _, err := slow.Next(); !mongoerr.Is(err, mongoerr.ChangeStreamHistoryLost) {
		t.Errorf("a stream left behind: got %v, want ChangeStreamHistoryLost", err)
	}
	expect(t, watch(t, e, StreamOptions{NS: things}))
}

func TestStream_ATokenThatIsNotInTheOplogIsRefused(t *testing.T) {
	t.Parallel()
	e := New(Config{})
	e.mustInsert(t, Write{}, doc(t, "_id", 1))
	e.mustInsert(t, Write{}, doc(t, "_id", 2))
	whole := watch(t, e, StreamOptions{NS: things, StartAt: 1})
	first, err := whole.Next()
	must(t, err)
	forged := oplog.TokenOf(&oplog.Entry{Time: first.Token.Time, Key: doc(t, "_id", 77)})
	between := first.Token
	between.Index = 5
	for name, token := range map[string]oplog.ResumeToken{"of another document": forged, "of another place in a transaction": between} {
		s := watch(t, e, StreamOptions{NS: things, Resume: &token})
		if _, err := s.Next(); !mongoerr.Is(err, mongoerr.ChangeStreamFatalError) {
			t.Errorf("a token %s: got %v, want ChangeStreamFatalError", name, err)
		}
	}
}

func TestStream_Scopes(t *testing.T) {
	t.Parallel()
	e := New(Config{})
	collection := watch(t, e, StreamOptions{NS: things})
	database := watch(t, e, StreamOptions{NS: oplog.Namespace{DB: "test"}})
	cluster := watch(t, e, StreamOptions{})
	insert := func(db, coll string, id int) {
		_, err := e.Insert(t.Context(), Write{}, oplog.Namespace{DB: db, Collection: coll}, []bson.Raw{doc(t, "_id", id)})
		must(t, err)
	}
	insert("test", "things", 1)
	insert("test", "others", 2)
	insert("elsewhere", "things", 3)
	insert("admin", "things", 4)
	view := oplog.Namespace{DB: "test", Collection: "view"}
	options, err := NewCollectionOptions(doc(t, "viewOn", "things", "pipeline", bson.A{}))
	must(t, err)
	must(t, e.CreateCollection(t.Context(), nil, view, options))
	_, err = e.Drop(t.Context(), view)
	must(t, err)
	must(t, e.CreateCollection(t.Context(), nil, view, options))
	must(t, e.Rename(t.Context(), oplog.Namespace{DB: "test", Collection: "others"}, oplog.Namespace{DB: "test", Collection: "moved"}, false))
	_, err = e.DropDatabase(t.Context(), "test")
	must(t, err)
	insert("test", "things", 5)
	expect(t, collection, "insert 1", "drop", "invalidate")
	expect(t, database, "insert 1", "insert 2", "rename", "drop", "drop", "dropDatabase", "invalidate")
	expect(t, cluster, "insert 1", "insert 2", "insert 3", "rename", "drop", "drop", "dropDatabase", "insert 5")
	if !collection.Ended() || !database.Ended() || cluster.Ended() {
		t.Errorf("got ended %t, %t, %t, want true, true, false", collection.Ended(), database.Ended(), cluster.Ended())
	}
}

func TestStream_ARenameOntoTheWatchedCollectionInvalidates(t *testing.T) {
	t.Parallel()
	e := New(Config{})
	e.mustInsert(t, Write{}, doc(t, "_id", 1))
	target := oplog.Namespace{DB: "test", Collection: "target"}
	s := watch(t, e, StreamOptions{NS: target})
	must(t, e.Rename(t.Context(), things, target, false))
	expect(t, s, "rename", "invalidate")
}

func TestStream_UpdateLookup(t *testing.T) {
	t.Parallel()
	e := New(Config{})
	e.mustInsert(t, Write{}, doc(t, "_id", 1), doc(t, "_id", 2))
	s := watch(t, e, StreamOptions{NS: things, UpdateLookup: true})
	for _, id := range []int{1, 2} {
		_, err := e.Update(t.Context(), Write{}, things, set(t, id, "n", 1))
		must(t, err)
	}
	_, err := e.Update(t.Context(), Write{}, things, set(t, 1, "later", true))
	must(t, err)
	_, err = e.Delete(t.Context(), Write{}, things, Selection{Filter: filter(t, "_id", 2)})
	must(t, err)
	first, err := s.Next()
	must(t, err)
	if got, want := first.Doc.Lookup("fullDocument").Document().String(), doc(t, "_id", 1, "n", 1, "later", true).String(); got != want {
		t.Errorf("got full document %s, want the present one, %s", got, want)
	}
	second, err := s.Next()
	must(t, err)
	if got := second.Doc.Lookup("fullDocument").Type; got != bson.TypeNull {
		t.Errorf("got full document of type %s for a deleted one, want null", got)
	}
}

// TestStream_ReadingPastManyEntries crosses the read-ahead of a stream and the chunks
// of the oplog.
func TestStream_ReadingPastManyEntries(t *testing.T) {
	t.Parallel()
	e := New(Config{})
	s := watch(t, e, StreamOptions{NS: things})
	const count = 3*512 + 17
	var docs []bson.Raw
	for i := range count {
		docs = append(docs, doc(t, "_id", i))
	}
	e.mustInsert(t, Write{}, docs...)
	got := drain(t, s)
	if len(got) != count {
		t.Fatalf("got %d events, want %d", len(got), count)
	}
	for i, event := range got {
		if want := fmt.Sprint("insert ", i); event != want {
			t.Fatalf("event %d: got %q, want %q", i, event, want)
		}
	}
}
