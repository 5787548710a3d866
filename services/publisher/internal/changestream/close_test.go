package changestream_test

import (
	"context"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/testserver"
)

// cursors counts the cursors that a client has open on the server, as the
// server's answers tell.
type cursors struct {
	mu      sync.Mutex
	open    map[int64]bool
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

func (c *cursors) left() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// TestStream_AStopLeavesNoCursorOnTheServer ends the context in the midst of a
// poll, as a stop does, and checks the server's own answers.
func TestStream_AStopLeavesNoCursorOnTheServer(t *testing.T) {
	t.Parallel()
	open := &cursors{open: map[int64]bool{}, polling: make(chan struct{}, 1)}
	client, err := mongo.Connect(options.Client().ApplyURI(testserver.Get(t).MongoURI).SetMonitor(&event.CommandMonitor{
		Started: open.started, Succeeded: open.succeeded,
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	collection := client.Database(testserver.Name(t)).Collection("events")
	if _, err := collection.InsertOne(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	for _, source := range []changestream.Source{changestream.Of(collection), {Database: collection.Database()}} {
		t.Run(source.String()[len(source.Database.Name()):], func(t *testing.T) { stopAndCount(t, client, open, source) })
	}
}

func stopAndCount(t *testing.T, client *mongo.Client, open *cursors, source changestream.Source) {
	t.Helper()
	if err := source.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := open.left(); got != 0 {
		t.Errorf("%d cursors are left of a check, want none", got)
	}
	now, err := changestream.Now(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	stream := changestream.New(source, changestream.Start{At: now}, zerolog.Nop())
	ctx, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	reading.Go(func() {
		for ctx.Err() == nil {
			_, _ = stream.Read(ctx)
		}
	})
	<-open.polling
	stop()
	reading.Wait()
	stream.Close(ctx)
	if got := open.left(); got != 0 {
		t.Errorf("%d cursors are left after a stop, want none", got)
	}
}
