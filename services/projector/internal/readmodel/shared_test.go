package readmodel_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
)

// held is a monitor that keeps the first update commands until they are let go.
type held struct {
	updates, statements atomic.Int64 // that have begun
	let                 chan struct{}
}

func (h *held) monitor(first int64) *event.CommandMonitor {
	return &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		if e.CommandName != "update" || e.Command.Lookup("update").StringValue() != "c" {
			return
		}
		statements, _ := e.Command.Lookup("updates").Array().Values()
		h.statements.Add(int64(len(statements)))
		if h.updates.Add(1) <= first {
			<-h.let
		}
	}}
}

// Of what sessions write in one command, one write is refused, and one was applied before:
// each is told so, and the others are stored.
func TestStore_WhatSharesACommandSharesNoOutcome(t *testing.T) {
	t.Parallel()
	h := held{let: make(chan struct{})}
	s := newSubject(t, h.monitor(2))
	text := set("refused", 1)
	text.Update = bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: "text"}}}}
	repeated := set("repeated", 2)
	other, _ := servers.Mongo(t, nil)
	unheld := readmodel.New(other, readmodel.Config{Database: s.db.Name()})
	for _, w := range []projection.Write{text, repeated} {
		if _, err := unheld.Writes.Write(t.Context(), []projection.Write{w}); err != nil {
			t.Fatal(err)
		}
	}
	refused := set("refused", 2)
	refused.Update = bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}

	writes := []projection.Write{set("first", 1), set("second", 1), refused, repeated}
	for i := range 20 {
		writes = append(writes, set(fmt.Sprint("other-", i), 1))
	}
	outcomes, errs := make([]delivery.Outcome, len(writes)), make([]error, len(writes))
	var sessions sync.WaitGroup
	for i, w := range writes {
		sessions.Go(func() {
			some, err := s.Write(t.Context(), []projection.Write{w})
			outcomes[i], errs[i] = some[0], err
		})
		for h.updates.Load() < 2 && int(h.updates.Load()) <= i || s.Store.Writes.Waiting("c") < i-1 {
			runtime.Gosched()
		}
	}
	close(h.let)
	sessions.Wait()
	for i, w := range writes {
		want := delivery.Applied
		switch w.ID {
		case "refused":
			want = delivery.Unknown
		case "repeated":
			want = delivery.Repeated
		}
		if outcomes[i] != want || (errs[i] != nil) != (w.ID == "refused") {
			t.Errorf("write of %s: got %v and %v, want %v", w.ID, outcomes[i], errs[i], want)
		}
		if got, err := s.Fields(t.Context(), "c", w.ID); err != nil || got == "" {
			t.Errorf("document %s: got %q and %v, want it stored", w.ID, got, err)
		}
	}
	if updates, statements := h.updates.Load(), h.statements.Load(); updates != 3 || statements != int64(len(writes)) {
		t.Errorf("got %d commands with %d statements, want 3 with %d", updates, statements, len(writes))
	}
}
