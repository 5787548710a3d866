package engine

import (
	"slices"
	"testing"
	"time"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
)

func TestClock_ClusterTimeNeverFalls(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	e := New(Config{Now: func() time.Time { return now }})
	var last oplog.Timestamp
	for _, second := range []int64{1000, 1000, 1005, 900, 901, 1006} {
		now = time.Unix(second, 0)
		e.note("x")
		got := e.OperationTime()
		if got <= last {
			t.Errorf("at second %d: got %v after %v, want a later time", second, got, last)
		}
		last = got
	}
	if want := oplog.NewTimestamp(1006, 1); last != want {
		t.Errorf("got %v, want %v: a new second begins at increment 1", last, want)
	}
}

// Entries of older journals have no clock of their own.
func TestClock_AnOlderEntryWasMadeInItsSecond(t *testing.T) {
	t.Parallel()
	w := &encoder{}
	w.entry(&oplog.Entry{Time: oplog.NewTimestamp(7, 1), Operation: oplog.OpNoop})
	const clock = 3 // bytes from the end: what it has, the clock, no note
	older := slices.Concat(w.buf[:len(w.buf)-clock], []byte{0, 0})
	r := &decoder{rest: older}
	if got := r.entry(); r.err != nil || len(r.rest) > 0 || got.Wall != 7000 {
		t.Errorf("got clock %d, error %v and %d more bytes, want 7000 and neither", got.Wall, r.err, len(r.rest))
	}
}
