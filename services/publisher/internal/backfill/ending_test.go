package backfill_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/rs/zerolog"

	"changerelay/services/publisher/internal/backfill"
	"changerelay/services/publisher/internal/testserver"
)

// TestCopy_EndsWithItsContextWhereTheServerIsGone ends a copy while it reads behind a
// connection that was cut.
func TestCopy_EndsWithItsContextWhereTheServerIsGone(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	u, err := url.Parse(servers.MongoURI)
	if err != nil {
		t.Fatal(err)
	}
	proxy := testserver.NewProxy(t, u.Host)
	client := testserver.Connect(t, "mongodb://"+proxy.Addr()+"/?directConnection=true&serverSelectionTimeoutMS=200")
	events := client.Database("shop").Collection("events")
	fill(t, events, 1, 2)
	source := backfill.New(events, backfill.Plan{Order: byVersion, Chunk: 1}, begin(t, events), zerolog.Nop())
	if _, err := source.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	proxy.Cut()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := source.Read(ctx)
		ended <- err
	}()
	testserver.Eventually(t, "a read to fail", func() bool { return source.State().Err != nil })
	cancel()
	testserver.Eventually(t, "the read to end", func() bool { return len(ended) == 1 })
}
