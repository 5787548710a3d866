package delivery

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/session"
)

// knows knows the halts and the versions of aggregates, or nothing at all.
type knows struct {
	Versions
	halt    HaltID
	reached int64
	err     error
}

func (k knows) List(context.Context, int) (map[string]HaltID, error) { return nil, k.err }
func (k knows) Halted(context.Context, string) (HaltID, error)       { return k.halt, k.err }
func (k knows) LastVersion(context.Context, string) (contract.Version, error) {
	return contract.VersionOf(k.reached), nil
}

// versioned is a batch of events with versions, the first enqueued now; 0 for a message
// of no aggregate.
func versioned(versions ...int64) *batch {
	b := &batch{aggregate: "a"}
	b.fill(make([]session.Message, len(versions)))
	for i, version := range versions {
		b.items[i].message.EnqueuedAt = time.Now()
		if version > 0 {
			b.items[i].event = &contract.Event{AggregateID: "a", Version: contract.VersionOf(version)}
		}
	}
	return b
}

func TestScreen_LetsOnWhatIsInItsTurn(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	for _, tt := range []struct {
		name   string
		knows  knows
		deadly string
		wait   time.Duration
		batch  []int64
		end    int
		rest   rest
		says   string
		err    error
	}{
		{name: "in order", knows: knows{reached: 2}, batch: []int64{3, 4}, end: 2},
		{name: "repeats, and a message of no aggregate", knows: knows{reached: 2}, batch: []int64{1, 0, 2, 3}, end: 4},
		{name: "of a halted aggregate", knows: knows{halt: "h"}, batch: []int64{3}, rest: behind, says: "is halted"},
		{name: "deadly, of a halted aggregate", knows: knows{halt: "h"}, deadly: "died", batch: []int64{3}, rest: behind, says: "is halted"},
		{name: "deadly", deadly: "died", batch: []int64{3}, rest: poisoned, says: "died"},
		{name: "deadly, of no aggregate", knows: knows{reached: 2}, deadly: "died", batch: []int64{0, 3}, end: 2},
		{name: "before a gap", knows: knows{reached: 2}, batch: []int64{3, 5}, end: 1, rest: gapped, says: "5 follows 3"},
		{name: "before a gap that may be closed", knows: knows{reached: 2}, wait: time.Minute, batch: []int64{3, 5}, end: 1, says: "", err: session.ErrNotYet},
		{name: "without an answer", knows: knows{err: down}, batch: []int64{3}, err: down},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := versioned(tt.batch...)
				b.deadly = tt.deadly
				s := &screen{halts: NewHalts(tt.knows), versions: &versions{store: tt.knows, aggregate: "a"}, wait: tt.wait}
				s.take(t.Context(), b)
				if b.end != tt.end || b.rest != tt.rest || !strings.Contains(b.reason, tt.says) || !errors.Is(b.err, tt.err) {
					t.Errorf("got end %d, rest %d, reason %q and %v; want %d, %d, %q and %v", b.end, b.rest, b.reason, b.err, tt.end, tt.rest, tt.says, tt.err)
				}
			})
		})
	}
}
