package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"changerelay/services/sandbox/internal/journal"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
)

// recovered opens an engine on a directory.
func recovered(t testing.TB, dir string) (*Engine, *journal.Journal) {
	t.Helper()
	var j *journal.Journal
	e, err := Recover(Config{}, func(replay func([]byte) error) (Journal, error) {
		var err error
		j, _, err = journal.Open(dir, replay)
		return j, err
	})
	must(t, err)
	return e, j
}

// state describes all that is to outlive the process.
func (e *Engine) state(t testing.TB) []string {
	t.Helper()
	var lines []string
	for _, info := range e.Collections("") {
		lines = append(lines, fmt.Sprint(info.NS, " ", info.UUID, " ", info.Options.Listed))
		for _, spec := range info.Indexes {
			lines = append(lines, "  index "+spec.Listed.String())
		}
		for _, doc := range e.contents(t, nil, info.NS) {
			lines = append(lines, "  "+doc)
		}
	}
	entries := e.OplogEntries(false)
	for {
		entry, err := entries.Next()
		must(t, err)
		if entry == nil {
			break
		}
		lines = append(lines, entry.String())
	}
	for session, k := range e.kept {
		lines = append(lines, fmt.Sprintf("session %x: %d %t %v", session, k.number, k.committed, k.results))
	}
	slices.Sort(lines[len(lines)-len(e.kept):])
	return lines
}

// withoutLast drops the entry that every start adds.
func withoutLast(lines []string, kept int) []string {
	at := len(lines) - kept - 1
	return slices.Delete(slices.Clone(lines), at, at+1)
}

// TestJournal_EverythingOutlivesTheProcess makes random changes of every kind, opens
// the directory again after some of them, with and without a compaction before,
// and compares.
func TestJournal_EverythingOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		e, j := recovered(t, dir)
		for range rapid.IntRange(1, 3).Draw(rt, "lives") {
			for range rapid.IntRange(0, 15).Draw(rt, "changes") {
				anyChange(t, rt, e)
			}
			if rapid.Bool().Draw(rt, "compacted") {
				must(t, e.compact())
				anyChange(t, rt, e)
			}
			want := e.state(t)
			must(t, j.Close())
			e, j = recovered(t, dir)
			if got := withoutLast(e.state(t), len(e.kept)); !slices.Equal(got, want) {
				rt.Fatalf("got %q, want %q", got, want)
			}
			checkRecovered(rt, e)
		}
		must(t, j.Close())
	})
}

func checkRecovered(t *rapid.T, e *Engine) {
	for _, coll := range e.collections {
		checkRebuilt(t, coll.table)
	}
}

// anyChange makes a change; one that is refused is one too.
func anyChange(t *testing.T, rt *rapid.T, e *Engine) {
	ns := oplog.Namespace{DB: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "db"), Collection: rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "coll")}
	id := rapid.IntRange(1, 5).Draw(rt, "id")
	ctx := t.Context()
	insert := func(w Write) { _, _ = e.Insert(ctx, w, ns, []bson.Raw{doc(t, "_id", id, "n", id)}) }
	update := func(w Write) { _, _ = e.Update(ctx, w, ns, set(t, id, "m", rapid.IntRange(1, 3).Draw(rt, "m"))) }
	remove := func(w Write) { _, _ = e.Delete(ctx, w, ns, Selection{Filter: filter(t, "_id", id)}) }
	switch rapid.IntRange(0, 12).Draw(rt, "change") {
	case 0, 1, 2:
		insert(Write{})
	case 3:
		update(Write{})
	case 4:
		remove(Write{})
	case 5:
		session, err := e.CheckOut(ctx, doc(t, "id", rapid.IntRange(1, 2).Draw(rt, "session")))
		must(t, err)
		defer session.CheckIn()
		retry, err := session.Retryable(int64(rapid.IntRange(1, 3).Draw(rt, "number")))
		if err != nil {
			return
		}
		insert(Write{Retry: retry, Statement: 1})
		update(Write{Retry: retry, Statement: 2, Documents: true})
	case 6:
		session, err := e.CheckOut(ctx, doc(t, "id", 3))
		must(t, err)
		defer session.CheckIn()
		txn, err := session.StartTransaction(session.id.Number + 1)
		must(t, err)
		insert(Write{Txn: txn})
		remove(Write{Txn: txn})
		update(Write{Txn: txn})
		must(t, session.Commit(session.id.Number))
	case 7:
		after := int32(100)
		listed := doc(t, "v", 2, "key", doc(t, "n", -1), "name", "n", "expireAfterSeconds", after,
			"partialFilterExpression", doc(t, "n", doc(t, "$gt", 2)))
		spec, err := storage.NewIndexSpec(listed)
		must(t, err)
		_, _ = e.CreateIndexes(ctx, nil, ns, []storage.IndexSpec{spec})
	case 8:
		_, _ = e.DropIndexes(ctx, ns, func([]storage.IndexSpec) ([]string, error) { return []string{"n"}, nil })
	case 9:
		_, _ = e.Drop(ctx, ns)
	case 10:
		_, _ = e.DropDatabase(ctx, ns.DB)
	case 11:
		_ = e.Rename(ctx, ns, oplog.Namespace{DB: "a", Collection: "z"}, true)
	case 12:
		options, err := NewCollectionOptions(doc(t, "validator", doc(t, "n", doc(t, "$lt", 100))))
		must(t, err)
		_ = e.CreateCollection(ctx, nil, ns, options)
		_ = e.SetOptions(ctx, ns, nil, func(CollectionOptions) (CollectionOptions, error) { return options, nil })
	}
}

func TestJournal_ARetryIsRecognisedAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, j := recovered(t, dir)
	for range 3 {
		s := checkOut(t, e)
		retry, err := s.Retryable(7)
		must(t, err)
		e.mustInsert(t, Write{Retry: retry}, doc(t, "_id", 1, "n", 0))
		result, err := e.Update(t.Context(), Write{Retry: retry, Statement: 1, Documents: true}, things,
			updateOf(t, filter(t, "_id", 1), doc(t, "$inc", doc(t, "n", 1))))
		must(t, err)
		if got, want := result.After.String(), doc(t, "_id", 1, "n", 1).String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		must(t, j.Close())
		e, j = recovered(t, dir)
	}
	must(t, j.Close())
}

func TestJournal_AStreamResumesAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, j := recovered(t, dir)
	s := watch(t, e, StreamOptions{NS: things})
	e.mustInsert(t, Write{}, doc(t, "_id", 1), doc(t, "_id", 2), doc(t, "_id", 3))
	event, err := s.Next()
	must(t, err)
	must(t, j.Close())
	e, j = recovered(t, dir)
	e.mustInsert(t, Write{}, doc(t, "_id", 4))
	expect(t, watch(t, e, StreamOptions{NS: things, Resume: &event.Token}), "insert 2", "insert 3", "insert 4")
	must(t, j.Close())
}

// salvageWithout damages the record of a snapshot that holds mark, where find finds it, and salvages what is left.
func salvageWithout(t *testing.T, dir, mark string, find func(content, mark []byte) int) journal.Salvaged {
	t.Helper()
	snapshots, err := filepath.Glob(filepath.Join(dir, "snapshot-*"))
	must(t, err)
	content, err := os.ReadFile(snapshots[0])
	must(t, err)
	content[find(content, []byte(mark))] ^= 1
	must(t, os.WriteFile(snapshots[0], content, 0o600))
	done, err := journal.Salvage(dir, func() (journal.Take, error) { return Salvager(), nil })
	must(t, err)
	return done
}

// largePicture writes three collections; the record that ends the first begins the second, which goes on
// in the next, where the third begins. older writes it as it was before records named their collection.
func largePicture(t *testing.T, dir string, older bool) (first, second, third oplog.Namespace) {
	t.Helper()
	e, j := recovered(t, dir)
	name := func(coll string) oplog.Namespace { return oplog.Namespace{DB: things.DB, Collection: coll} }
	first, second, third = name("a"), name("b"), name("c")
	for _, fill := range []struct {
		ns   oplog.Namespace
		docs int
	}{{first, 5}, {second, 5}, {third, 1}} {
		for i := range fill.docs {
			text := fill.ns.Collection + fmt.Sprint(i) + strings.Repeat("-", pictureRecord/3)
			_, err := e.Insert(t.Context(), Write{}, fill.ns, []bson.Raw{doc(t, "_id", fill.ns.Collection+fmt.Sprint(i), "text", text)})
			must(t, err)
		}
	}
	segment, err := j.Cut()
	must(t, err)
	p := e.picture()
	must(t, j.Compact(segment, func(emit func([]byte) error) error {
		return p.emit(func(record []byte) error {
			if older && record[0] == itemContinue {
				record = record[1+len(uuid.UUID{}):]
			}
			return emit(record)
		})
	}))
	must(t, j.Close())
	return first, second, third
}

// ids are the keys of what is in a collection.
func (e *Engine) ids(t *testing.T, ns oplog.Namespace) string {
	t.Helper()
	var ids []string
	for _, doc := range e.contents(t, nil, ns) {
		var of struct {
			ID string `bson:"_id"`
		}
		must(t, bson.UnmarshalExtJSON([]byte(doc), false, &of))
		ids = append(ids, of.ID)
	}
	return strings.Join(ids, " ")
}

func TestJournal_ASalvagePutsNoDocumentIntoAnotherCollection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, damaged        string
		older                bool
		first, second, third string
	}{
		{"the name of a collection is lost", "b0", false, "a0 a1 a2", "", "c0"},
		{"the first record is lost", "a0", false, "", "b0 b1 b2 b3 b4", "c0"},
		{"a collection goes on behind what is lost", "b1", false, "a0 a1 a2 a3 a4", "b0 b4", "c0"},
		{"the name is lost from an older snapshot", "b0", true, "a0 a1 a2", "", "c0"},
		{"the first record is lost from an older snapshot", "a0", true, "", "b0 b1 b2 b3 b4", "c0"},
		{"an older snapshot goes on behind what is lost", "b1", true, "a0 a1 a2 a3 a4", "b0", "c0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			first, second, third := largePicture(t, dir, c.older)
			e, j := recovered(t, dir)
			if got, want := e.ids(t, second), "b0 b1 b2 b3 b4"; got != want {
				t.Errorf("got %s before the damage, want %s", got, want)
			}
			must(t, j.Close())
			done := salvageWithout(t, dir, c.damaged+"---", bytes.Index)
			e, j = recovered(t, dir)
			for ns, want := range map[oplog.Namespace]string{first: c.first, second: c.second, third: c.third} {
				if got := e.ids(t, ns); got != want {
					t.Errorf("got %q in %s, want %q; lost: %+v", got, ns, want, done.Lost)
				}
			}
			must(t, j.Close())
		})
	}
}

// A snapshot's first record holds the counters. What was read without it keeps its ids.
func TestJournal_ASalvageWithoutTheCountersOverwritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, j := recovered(t, dir)
	const mark = "fills the first record"
	lost := oplog.Namespace{DB: things.DB, Collection: "a"}
	_, err := e.Insert(t.Context(), Write{}, lost, []bson.Raw{doc(t, "_id", 1, "text", strings.Repeat(mark, pictureRecord/len(mark)+1))})
	must(t, err)
	e.mustInsert(t, Write{}, doc(t, "_id", 1), doc(t, "_id", 2), doc(t, "_id", 3))
	must(t, e.compact())
	must(t, j.Close())
	salvageWithout(t, dir, mark, bytes.Index)

	e, j = recovered(t, dir)
	e.mustInsert(t, Write{}, doc(t, "_id", 4), doc(t, "_id", 5), doc(t, "_id", 6), doc(t, "_id", 7))
	want := e.contents(t, nil, things)
	if len(want) != 7 {
		t.Errorf("got %q after the inserts, want the 3 documents that were kept and 4 new ones", want)
	}
	must(t, j.Close())
	e, j = recovered(t, dir)
	if got := e.contents(t, nil, things); !slices.Equal(got, want) {
		t.Errorf("got %q after a restart, want %q", got, want)
	}
	must(t, j.Close())
}

// A stream that resumes gives all that came after its place, or none.
func TestJournal_AStreamResumesOverNothingThatASalvageHasLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		damaged       string
		find          func(content, mark []byte) int
		inTransaction bool
		later, lost   int
	}{
		{"in the middle of the history", "text 4", bytes.Index, false, 0, 6},
		{"within a transaction", "text 1", bytes.Index, true, 0, 6},
		{"at the beginning of the history", "text 1", bytes.Index, false, 0, 3},
		{"at the end of the history", "id 6", bytes.LastIndex, false, 0, 12},
		{"before later changes", "id 6", bytes.LastIndex, false, 2, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			e, j := recovered(t, dir)
			must(t, e.CreateCollection(t.Context(), nil, things, CollectionOptions{}))
			s := watch(t, e, StreamOptions{NS: things})
			txn := begin(t, e, 1)
			w := map[bool]Write{true: {Txn: txn}}[c.inTransaction]
			for i := range 6 {
				e.mustInsert(t, w, doc(t, "_id", fmt.Sprint("id ", i+1), "text", strings.Repeat(fmt.Sprint("text ", i+1), pictureRecord/15)))
			}
			must(t, txn.Commit())
			for i := range 6 {
				_, err := e.Delete(t.Context(), Write{}, things, Selection{Filter: filter(t, "_id", fmt.Sprint("id ", i+1))})
				must(t, err)
			}
			must(t, e.compact())
			for i := range c.later {
				e.mustInsert(t, Write{}, doc(t, "_id", i))
			}
			events := tokens(t, s)
			must(t, j.Close())
			salvageWithout(t, dir, c.damaged, c.find)

			e, j = recovered(t, dir)
			e.mustInsert(t, Write{}, doc(t, "_id", "new"))
			lost := 0
			for i := range events {
				resumed, err := e.Watch(StreamOptions{NS: things, Resume: &events[i]})
				if err != nil {
					lost++
					continue
				}
				if got, want := len(tokens(t, resumed)), len(events)-i; got != want {
					t.Errorf("got %d events after event %d of %d and a new one, want %d", got, i+1, len(events), want)
				}
			}
			if lost != c.lost {
				t.Errorf("got the history lost of %d events, want %d", lost, c.lost)
			}
			must(t, j.Close())
		})
	}
}

// tokens are those of the events that are there.
func tokens(t *testing.T, s *Stream) []oplog.ResumeToken {
	t.Helper()
	var all []oplog.ResumeToken
	for {
		event, err := s.Next()
		must(t, err)
		if event == nil {
			return all
		}
		all = append(all, event.Token)
	}
}

// A $out that is under way when the process is killed leaves a collection, which nobody can know of.
func TestJournal_ATemporaryCollectionDoesNotOutliveTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, j := recovered(t, dir)
	own := oplog.Namespace{DB: things.DB, Collection: "tmp.agg_out.mine"}
	for _, ns := range []oplog.Namespace{NewTemporary(things.DB), NewTemporary("other"), own} {
		_, err := e.Insert(t.Context(), Write{}, ns, []bson.Raw{doc(t, "_id", 1)})
		must(t, err)
	}
	must(t, j.Close())
	for range 2 {
		e, j = recovered(t, dir)
		if got := e.Collections(""); len(got) != 1 || got[0].NS != own {
			t.Errorf("got %v after a restart, want %v alone", got, own)
		}
		must(t, j.Close())
	}
}

// fakeJournal holds commits back until it is told how they end.
type fakeJournal struct {
	mu       sync.Mutex
	appended int64
	largest  int        // of the records
	commit   chan error // nil: at once
}

func (j *fakeJournal) Append(record []byte) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.appended++
	j.largest = max(j.largest, len(record))
	return j.appended
}

func (j *fakeJournal) Commit(int64) error {
	j.mu.Lock()
	commit := j.commit
	j.mu.Unlock()
	if commit == nil {
		return nil
	}
	return <-commit
}

func (j *fakeJournal) hold() chan error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.commit = make(chan error)
	return j.commit
}

func (*fakeJournal) Logged() int64        { return 0 }
func (*fakeJournal) Cut() (uint64, error) { return 0, nil }
func (*fakeJournal) Compact(uint64, func(func([]byte) error) error) error {
	return nil
}

func TestJournal_NothingRunsAheadOfTheJournal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &fakeJournal{}
		e, err := Recover(Config{}, func(func([]byte) error) (Journal, error) { return j, nil })
		must(t, err)
		e.mustInsert(t, Write{}, doc(t, "_id", 0))
		s := watch(t, e, StreamOptions{NS: things})
		commit := j.hold()
		written, read := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := e.Insert(t.Context(), Write{}, things, docs(t, 1))
			written <- err
		}()
		synctest.Wait()
		go func() { read <- e.Durable() }()
		synctest.Wait()
		expect(t, s)
		if len(written) != 0 || len(read) != 0 {
			t.Errorf("got %d writes and %d reads acknowledged before the commit, want none", len(written), len(read))
		}
		commit <- nil
		commit <- nil
		must(t, <-written)
		must(t, <-read)
		expect(t, s, "insert 1")
	})
}

func TestJournal_AJournalThatFailsEndsTheEngine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &fakeJournal{}
		e, err := Recover(Config{}, func(func([]byte) error) (Journal, error) { return j, nil })
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		broken := errors.New("no space left on device")
		commit := j.hold()
		go func() { commit <- broken }()
		if _, err := e.Insert(t.Context(), Write{}, things, docs(t, 1)); !errors.Is(err, broken) {
			t.Errorf("the write: got %v, want %v", err, broken)
		}
		if err := <-ended; !errors.Is(err, broken) {
			t.Errorf("run: got %v, want %v", err, broken)
		}
	})
}

func FuzzRestore(f *testing.F) {
	w := &encoder{}
	w.change(&oplog.Change{Entry: oplog.Entry{Time: 5, Operation: oplog.OpCreate, NS: things}})
	w.change(&oplog.Change{Entry: oplog.Entry{Time: 6, Operation: oplog.OpInsert, NS: things, Doc: doc(f, "_id", 1), Key: doc(f, "_id", 1)}, Record: 1})
	w.outcome(outcome{session: doc(f, "id", 1), number: 1, result: Result{Operation: oplog.OpInsert, Matched: 1}})
	w.counters(counters{clock: 7, databases: []string{"test"}})
	f.Add(w.buf)
	f.Fuzz(func(t *testing.T, record []byte) {
		_ = newEngine(Config{}).restore(record)
	})
}

// checkRebuilt wants the indexes of a table to be as if built from its documents.
func checkRebuilt(t *rapid.T, restored *storage.Table) {
	fresh := storage.NewTable()
	if err := fresh.Adopt(restored.Indexes[1:]); err != nil {
		t.Fatal(err)
	}
	restored.Records.Scan(func(id int64, rec storage.Record) bool {
		if err := fresh.Insert(id, rec.Doc, 0); err != nil {
			t.Fatal(err)
		}
		return true
	})
	for i, ix := range restored.Indexes {
		want := fresh.Indexes[i]
		if !slices.Equal(ix.Keys.Keys(), want.Keys.Keys()) || !slices.Equal(ix.Keys.Values(), want.Keys.Values()) {
			t.Fatalf("index %s: got keys %q of %v, want %q of %v", ix.Spec.Name, ix.Keys.Keys(), ix.Keys.Values(), want.Keys.Keys(), want.Keys.Values())
		}
	}
}
