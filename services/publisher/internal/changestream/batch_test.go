package changestream_test

import (
	"context"
	"strings"
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

// answers are the answers of a server that have changes.
type answers struct {
	mu    sync.Mutex
	sizes []int // guarded by mu: in bytes
	most  int   // guarded by mu: changes in one of them
}

func (a *answers) note(_ context.Context, e *event.CommandSucceededEvent) {
	batch, ok := e.Reply.Lookup("cursor", "nextBatch").ArrayOK()
	if !ok {
		batch, _ = e.Reply.Lookup("cursor", "firstBatch").ArrayOK()
	}
	if values, _ := batch.Values(); len(values) > 0 {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.sizes, a.most = append(a.sizes, len(e.Reply)), max(a.most, len(values))
	}
}

// TestStream_AnAnswerIsAsLargeAsThereIsRoomFor has large changes, and then small ones.
func TestStream_AnAnswerIsAsLargeAsThereIsRoomFor(t *testing.T) {
	t.Parallel()
	const large, small, mib = 400, 6000, 1 << 20
	given := &answers{}
	client, err := mongo.Connect(options.Client().ApplyURI(testserver.Get(t).MongoURI).SetMonitor(&event.CommandMonitor{Succeeded: given.note}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) }) // the test is over
	events := client.Database(testserver.Name(t)).Collection("events")
	start := now(t, events)
	for range large / 100 {
		var documents []any
		for range 100 {
			documents = append(documents, bson.D{{Key: "data", Value: strings.Repeat("x", 50<<10)}})
		}
		insertMany(t, events, documents)
	}
	source := changestream.Of(events)
	source.ReadBytes = mib / 4
	stream := changestream.New(source, start, zerolog.Nop())
	t.Cleanup(func() { stream.Close(context.WithoutCancel(t.Context())) })
	for n := 0; n < large; {
		batch, err := stream.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(batch.Changes) > 6 {
			t.Fatalf("a read of %d changes of 50 KiB, want 6 at most in 256 KiB", len(batch.Changes))
		}
		n += len(batch.Changes)
	}
	for i, size := range given.sizes {
		if limit := map[bool]int{true: 6 * mib, false: 5 * mib / 2}[i == 0]; size > limit {
			t.Errorf("answer %d has %d bytes, want %d at most", i, size, limit)
		}
	}
	given.most = 0
	documents := make([]any, small)
	for i := range documents {
		documents[i] = bson.D{}
	}
	insertMany(t, events, documents)
	for n := 0; n < small; {
		batch, err := stream.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n += len(batch.Changes)
	}
	if given.most != 1000 {
		t.Errorf("the largest answer has %d small changes, want 1000", given.most)
	}
}

func insertMany(t *testing.T, into *mongo.Collection, documents []any) {
	t.Helper()
	if _, err := into.InsertMany(t.Context(), documents); err != nil {
		t.Fatal(err)
	}
}
