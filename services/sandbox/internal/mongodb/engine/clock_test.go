package engine

import (
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
