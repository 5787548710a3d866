package changestream_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/settings"
	"changerelay/services/publisher/internal/testserver"
)

// TestStream_AnAnswerMayComeSlowly has a change whose answer takes longer to come than an
// answer may take to begin.
func TestStream_AnAnswerMayComeSlowly(t *testing.T) {
	t.Parallel()
	stream := slow(t, 200_000)
	if _, err := readSome(t.Context(), stream, 1); err != nil {
		t.Fatal(err)
	}
	if state := stream.State(); state.Reopened != 0 {
		t.Errorf("the stream was opened %d times again, want its answer to be waited for", state.Reopened)
	}
}

// TestStream_AnAnswerThatComesSlowlyCanBeCancelled has a reader be told to stop while an answer
// comes that it has waited for longer than one may take to begin.
func TestStream_AnAnswerThatComesSlowlyCanBeCancelled(t *testing.T) {
	t.Parallel()
	stream := slow(t, 100_000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	defer time.AfterFunc(20*time.Second, cancel).Stop() // of 42 for the answer
	if got, err := readSome(ctx, stream, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Read = %d changes, %v, want it cancelled", len(got), err)
	}
}

// slow returns a stream whose next answer has 4 MiB, at so many bytes a second.
func slow(t *testing.T, perSecond int) *changestream.Stream {
	t.Helper()
	servers := testserver.Start(t)
	client, err := config.ConnectMongo(settings.Secret(servers.MongoURI))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) }) // the test is over
	events := client.Database(testserver.Name(t)).Collection("events")
	stream := changestream.New(changestream.Of(events), now(t, events), zerolog.Nop())
	t.Cleanup(func() { stream.Close(context.WithoutCancel(t.Context())) })
	if batch, err := stream.Read(t.Context()); err != nil || len(batch.Changes) > 0 {
		t.Fatalf("Read = %+v, %v, want no change", batch, err)
	}
	insertMany(t, events, []any{bson.D{{Key: "data", Value: strings.Repeat("x", 4<<20)}}})
	testserver.SetWorld(t, servers, fmt.Sprintf(`{"mongodb":{"bytes_per_second":%d}}`, perSecond))
	return stream
}
