package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
)

// seenAfter is how long it takes until a stream has an event.
func seenAfter(t *testing.T, s *Stream) time.Duration {
	t.Helper()
	began := time.Now()
	must(t, s.Wait(t.Context()))
	event, err := s.Next()
	must(t, err)
	if event == nil {
		t.Fatal("got no event, want one")
	}
	return time.Since(began)
}

func wantTime(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if got != want {
		t.Errorf("got %s for %s, want %s", got, what, want)
	}
}

func TestPace_AChangeIsSeenWhenTheJournalIsWrittenOrAMajorityWasWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{})
		e.SetPace(Pace{Majority: 5 * time.Millisecond, JournalInterval: 100 * time.Millisecond})
		s := watch(t, e, StreamOptions{NS: things})
		e.mustInsert(t, Write{}, doc(t, "_id", 1))
		wantTime(t, "a write that nobody waits for", seenAfter(t, s), 100*time.Millisecond)

		e.mustInsert(t, Write{}, doc(t, "_id", 2))
		go func() { _ = e.AwaitMajority(context.WithoutCancel(t.Context())) }()
		wantTime(t, "a write that is waited for", seenAfter(t, s), 5*time.Millisecond)
		time.Sleep(time.Second)

		e.SetPace(Pace{})
		e.mustInsert(t, Write{}, doc(t, "_id", 3))
		wantTime(t, "a write at no pace", seenAfter(t, s), 0)
	})
}

func TestPace_StreamsAndReadsOfAMajorityWaitForOneJournal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{})
		e.SetPace(Pace{JournalInterval: time.Minute})
		s := watch(t, e, StreamOptions{NS: things})
		e.mustInsert(t, Write{Majority: true}, doc(t, "_id", 0))
		must(t, e.AwaitMajority(t.Context()))
		seenAfter(t, s)
		e.mustInsert(t, Write{}, doc(t, "_id", 1))
		time.Sleep(time.Second)
		if n := e.MajorityView(things).Count(); n != 1 {
			t.Errorf("got %d documents that a majority has, want that of before", n)
		}
		wantTime(t, "the stream", seenAfter(t, s), time.Minute-time.Second)
		if n := e.MajorityView(things).Count(); n != 2 {
			t.Errorf("got %d documents that a majority has after the stream has shown the write, want 2", n)
		}

		e.SetPace(Pace{})
		e.mustInsert(t, Write{}, doc(t, "_id", 2))
		wantTime(t, "the stream at no pace", seenAfter(t, s), 0)
		e.Shown()
		if n := e.MajorityView(things).Count(); n != 3 {
			t.Errorf("got %d documents that a majority has after the stream has shown the write at no pace, want 3", n)
		}
	})
}

func TestPace_AResumeTakesItsTimeForEachEntryUpToAFullBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{})
		from := e.OperationTime()
		other := oplog.Namespace{DB: "test", Collection: "other"}
		for i := range 1000 {
			_, err := e.Insert(t.Context(), Write{}, other, []bson.Raw{doc(t, "_id", i)})
			must(t, err)
		}
		for i := range 300 {
			e.mustInsert(t, Write{}, doc(t, "_id", i))
		}
		e.SetPace(Pace{ResumePerEntry: time.Millisecond})
		took := func(ns oplog.Namespace, enough int) time.Duration {
			began := time.Now()
			must(t, e.AwaitScan(t.Context(), watch(t, e, StreamOptions{NS: ns, StartAt: from + 1}), enough))
			return time.Since(began).Round(100 * time.Millisecond)
		}
		wantTime(t, "a busy neighbour and a full batch", took(things, 101), 1100*time.Millisecond)
		wantTime(t, "a collection without events", took(oplog.Namespace{DB: "test", Collection: "idle"}, 101), 1300*time.Millisecond)
		began := time.Now()
		must(t, e.AwaitScan(t.Context(), watch(t, e, StreamOptions{NS: things}), 101))
		wantTime(t, "a stream that begins now", time.Since(began), 0)

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if e.AwaitScan(ended, watch(t, e, StreamOptions{NS: things, StartAt: from + 1}), 101) == nil {
			t.Error("got no error from a scan whose client has left, want one")
		}
	})
}
