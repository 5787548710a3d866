package mongostate_test

import (
	"context"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/testserver"
)

// cursors counts the cursors that a client has open on the server, as the
// server's answers tell.
type cursors struct {
	mu      sync.Mutex
	open    map[int64]bool // guarded by mu
	polling chan struct{}
}

func (c *cursors) started(_ context.Context, e *event.CommandStartedEvent) {
	if e.CommandName == "getMore" {
		select {
		case c.polling <- struct{}{}:
		default:
		}
	}
}

func (c *cursors) succeeded(_ context.Context, e *event.CommandSucceededEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e.CommandName {
	case "aggregate":
		if id, ok := e.Reply.Lookup("cursor", "id").AsInt64OK(); ok && id != 0 {
			c.open[id] = true
		}
	case "killCursors":
		killed, _ := e.Reply.Lookup("cursorsKilled").ArrayOK()
		values, _ := killed.Values()
		for _, id := range values {
			delete(c.open, id.AsInt64())
		}
	}
}

// A lease is watched until the process stops, in the midst of a poll.
func TestLease_AWatchThatEndsLeavesNoCursorOnTheServer(t *testing.T) {
	t.Parallel()
	open := &cursors{open: map[int64]bool{}, polling: make(chan struct{}, 1)}
	client, err := mongo.Connect(options.Client().ApplyURI(testserver.Get(t).MongoURI).SetMonitor(&event.CommandMonitor{
		Started: open.started, Succeeded: open.succeeded,
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		if err := mongostate.New(client, testserver.Name(t)).Lease("orders").Watch(ctx, func() {}); ctx.Err() == nil {
			t.Errorf("the watch ended by itself: %v", err)
		}
	})
	<-open.polling
	stop()
	watching.Wait()
	open.mu.Lock()
	defer open.mu.Unlock()
	if len(open.open) != 0 {
		t.Errorf("%d cursors are left, want none", len(open.open))
	}
}
