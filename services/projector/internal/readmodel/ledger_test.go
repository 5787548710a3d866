package readmodel_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

// cutter ends a context at the nth command, as it starts or once it is answered.
type cutter struct {
	mu       sync.Mutex
	left     int // guarded by mu
	answered bool
	cut      context.CancelFunc
}

func (c *cutter) command(answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut == nil || answered != c.answered {
		return
	}
	if c.left--; c.left == 0 {
		c.cut()
	}
}

func (c *cutter) arm(left int, answered bool, cut context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.answered, c.cut = left, answered, cut
}

// A process may die at any command of a transaction: the totals and the
// position move together or not at all, and what comes again counts once.
func TestLedger_TotalsCountOnceWhereverTheProcessDies(t *testing.T) {
	t.Parallel()
	var c cutter
	s := newSubject(t, &event.CommandMonitor{
		Started:   func(context.Context, *event.CommandStartedEvent) { c.command(false) },
		Succeeded: func(context.Context, *event.CommandSucceededEvent) { c.command(true) },
	})
	cut, version := 0, int64(0)
	for _, answered := range []bool{false, true} {
		// The ledger, two collections, and the commit; then with a repeat before it.
		for at := 1; at <= 6; at++ {
			var writes []projection.Write
			for n := version; n < version+3; n++ {
				for _, collection := range []string{"totals", "more"} {
					writes = append(writes, projection.Write{
						Projection: "p", Collection: collection, ID: "all", Keyed: true,
						Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "events", Value: 1}}}},
					})
				}
				e := readmodeltest.Event("a", n+1)
				writes[len(writes)-2].Event, writes[len(writes)-1].Event = e, e
			}
			version += 2 // the last one of them comes again
			ctx, cancel := context.WithCancel(t.Context())
			c.arm(at, answered, cancel)
			_, err := s.Write(ctx, writes)
			c.arm(0, false, nil)
			cancel()
			if err != nil {
				cut++
			}
			if _, err := s.Write(t.Context(), writes); err != nil {
				t.Fatalf("again, after %d: %v", at, err)
			}
			want := fmt.Sprintf(`{"events":%d}`, version+1)
			for _, collection := range []string{"totals", "more"} {
				if got, err := s.Fields(t.Context(), collection, "all"); err != nil || got != want {
					t.Fatalf("cut at command %d (answered %t), %s: got %s and %v, want %s", at, answered, collection, got, err, want)
				}
			}
		}
	}
	if cut < 6 {
		t.Errorf("the writes were cut %d times, want most of them", cut)
	}
}

// An event that a projection passes by changes nothing there, so another one of its
// sequence is no contradiction.
func TestKeyed_WhatIsPassedByContradictsNothing(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	write := func(id string, passed bool) projection.Write {
		w := projection.Write{Projection: "p", Collection: "totals", ID: "all", Keyed: true, Passed: passed, Event: readmodeltest.Event("a", 1), Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "events", Value: 1}}}}}
		w.Event.ID = id
		return w
	}
	if _, err := s.Write(t.Context(), []projection.Write{write("first", false)}); err != nil {
		t.Fatal(err)
	}
	outcomes, err := s.Write(t.Context(), []projection.Write{write("other", true)})
	if err != nil || outcomes[0] != delivery.Repeated {
		t.Errorf("passed by: got %v and %v, want a repeat", outcomes, err)
	}
	if _, err := s.Write(t.Context(), []projection.Write{write("other", false)}); err == nil {
		t.Error("not passed by: got no error, want it refused")
	}
}
