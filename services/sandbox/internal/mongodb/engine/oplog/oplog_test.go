package oplog

import (
	"context"
	"errors"
	"testing"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func entryAt(at Timestamp) Entry { return Entry{Time: at, Operation: OpInsert, NS: orders} }

func filledOplog(maxEntries, entries int) *Log {
	l := New(maxEntries, 1<<40)
	for i := range entries {
		l.Advance(l.Append(entryAt(Timestamp(10 * (i + 1)))))
	}
	return l
}

func TestOplog_OplogKeepsAtLeastItsBound(t *testing.T) {
	t.Parallel()
	for _, entries := range []int{1, 99, 100, 101, 2 * chunkEntries, 5*chunkEntries + 7} {
		l := filledOplog(100, entries)
		stats := l.Stats()
		if want := min(entries, 100); stats.Entries != want {
			t.Errorf("after %d entries: got %d kept, want %d", entries, stats.Entries, want)
		}
		if lost := stats.Cut != 0; lost != (entries > 100) {
			t.Errorf("after %d entries: got history lost %t, want %t", entries, lost, entries > 100)
		}
		read, next, err := l.Read(nil, l.first, entries)
		noError(t, err)
		if len(read) != stats.Entries || next != uint64(entries) || read[0].Time != stats.First {
			t.Errorf("after %d entries: read %d up to %d from %v, want %d up to %d from %v",
				entries, len(read), next, read[0].Time, stats.Entries, entries, stats.First)
		}
	}
}

func TestOplog_OplogIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	l := New(1<<30, 10*entryOverhead)
	for i := range 100 {
		l.Append(entryAt(Timestamp(i + 1)))
	}
	if got := l.Stats(); got.Entries != 10 || got.Bytes != 10*entryOverhead {
		t.Errorf("got %d entries of %d bytes, want 10 of %d", got.Entries, got.Bytes, 10*entryOverhead)
	}
}

func TestOplog_ATimeIsForgottenWithWhatIsLeftBeforeIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cut         Timestamp
		kept        int
		first, lost Timestamp
	}{
		{5, 2 * chunkEntries, 10, 5},
		{10 * chunkEntries, chunkEntries, 10*chunkEntries + 10, 10 * chunkEntries},
		{20*chunkEntries + 5, 0, 0, 20*chunkEntries + 5},
	} {
		l := filledOplog(1<<30, 2*chunkEntries)
		l.Forgot(c.cut)
		if got := l.Stats(); got.Entries != c.kept || got.Bytes != c.kept*entryOverhead || got.First != c.first || got.Cut != c.lost {
			t.Errorf("without all up to %d: got %+v, want %d entries from %d, cut at %d", c.cut, got, c.kept, c.first, c.lost)
		}
		l.Append(entryAt(30 * chunkEntries))
		if n, lost := l.Seek(30 * chunkEntries); lost || n != 2*chunkEntries {
			t.Errorf("without all up to %d: got the next entry at %d and lost %t, want it at %d", c.cut, n, lost, 2*chunkEntries)
		}
	}
}

func TestOplog_OplogSeek(t *testing.T) {
	t.Parallel()
	// Entries at 10, 20, … 2000; those up to 1900 are gone.
	l := filledOplog(10, 200)
	for name, c := range map[string]struct {
		at       Timestamp
		wantTime Timestamp
		wantLost bool
	}{
		"the time of an entry finds it":                        {1950, 1950, false},
		"a time between two entries finds the later":           {1951, 1960, false},
		"a time after the last finds the end":                  {2001, 0, false},
		"the time of the oldest entry is not lost":             {1910, 1910, false},
		"just after the last entry given up nothing is lost":   {1901, 1910, false},
		"the time of the last entry given up is lost":          {1900, 1910, true},
		"a time long gone is lost":                             {5, 1910, true},
		"the beginning of time is lost once entries are given": {1, 1910, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, lost := l.Seek(c.at)
			if lost != c.wantLost {
				t.Errorf("got lost %t, want %t", lost, c.wantLost)
			}
			got, _, err := l.Read(nil, n, 1)
			noError(t, err)
			if c.wantTime == 0 && len(got) > 0 || c.wantTime != 0 && got[0].Time != c.wantTime {
				t.Errorf("got entries %v, want the one at %v", got, c.wantTime)
			}
		})
	}
}

func TestOplog_OplogHidesWhatIsNotDurable(t *testing.T) {
	t.Parallel()
	l := New(100, 1<<30)
	first := l.Append(entryAt(10))
	l.Append(entryAt(20))
	l.Advance(first)
	got, _, err := l.Read(nil, 0, 10)
	noError(t, err)
	if _, last := l.End(); len(got) != 1 || last != 10 {
		t.Errorf("got %d entries up to %v, want 1 up to 10", len(got), last)
	}
}

func TestOplog_ReadingBehindTheOldestEntryIsLostHistory(t *testing.T) {
	t.Parallel()
	l := filledOplog(10, 20)
	if _, _, err := l.Read(nil, 9, 1); !mongoerr.Is(err, mongoerr.ChangeStreamHistoryLost) {
		t.Errorf("got %v, want ChangeStreamHistoryLost", err)
	}
}

func TestOplog_OplogWakesReaders(t *testing.T) {
	t.Parallel()
	l := New(100, 1<<30)
	woken := make(chan error)
	for range 3 {
		go func() { woken <- l.Wait(t.Context(), 0) }()
	}
	l.Advance(l.Append(entryAt(10)))
	for range 3 {
		noError(t, <-woken)
	}
	gone := errors.New("reader gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := l.Wait(ctx, 1); !errors.Is(err, gone) {
		t.Errorf("got %v, want the cause of the reader's end", err)
	}
}
