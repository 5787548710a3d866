package chaos

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	mongodriver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/cluster/clustertest"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/poll"
	"changerelay/services/e2e/internal/harness/source"
)

// withServers is a campaign that has servers, and nothing else.
func withServers(t *testing.T) *campaign {
	t.Helper()
	c := &campaign{
		out: io.Discard, began: time.Now(), taken: map[string]bool{}, data: t.TempDir(),
		binaries: cluster.Binaries{Sandbox: clustertest.Binary(t)},
	}
	args := []string{"--data", c.data}
	for _, flag := range []string{"--mongo", "--servicebus", "--management", "--http"} {
		address, err := cluster.FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, flag, address)
	}
	c.cluster = cluster.New(cluster.Config{Binaries: c.binaries, Dir: t.TempDir(), SandboxArgs: args})
	t.Cleanup(c.cluster.Close)
	if err := c.cluster.StartSandbox(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestServers_AFullDiskEndsTheServersAndWhatTheyAcknowledgedIsKept(t *testing.T) {
	t.Parallel()
	c := withServers(t)
	_, undo, err := fillDisk(t.Context(), c, rand.New(rand.NewPCG(1, 1)))
	if errors.Is(err, errNobody) {
		t.Skip("this system cannot limit the files of a running program")
	}
	if err != nil {
		t.Fatal(err)
	}
	client, err := mongodriver.Connect(options.Client().ApplyURI(c.cluster.Endpoints().MongoURI))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	writer := source.NewWriter(client, "db", "events")
	written := fill(t, c, writer)
	if err := undo(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := writer.Insert(t.Context(), []orders.Event{{Aggregate: "o", Version: written + 1, Type: "T", Data: orders.Data{}}}); err != nil {
		t.Fatal(err)
	}
	held := int64(0)
	err = source.Each(t.Context(), client, "db", "events", func(source.Stored) error { held++; return nil })
	if err != nil || held < written+1 {
		t.Errorf("got %d events, %v; want the %d that were acknowledged, and one more", held, err, written)
	}
}

// fill writes until the servers have ended, and returns how much they acknowledged.
func fill(t *testing.T, c *campaign, writer *source.Writer) (written int64) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			e := orders.Event{Aggregate: "o", Version: written + 1, Type: "T", Data: orders.Data{"note": strings.Repeat("x", 1000)}}
			if writer.Insert(ctx, []orders.Event{e}) != nil {
				return
			}
			written++
		}
	}()
	err := poll.Until(t.Context(), "the servers to end", func(context.Context) (bool, string) { return !c.cluster.Sandbox.Running(), "they run" })
	stop()
	<-done
	if err != nil {
		t.Fatal(err)
	}
	if log := c.cluster.Sandbox.Log(); !strings.Contains(log, "file too large") {
		t.Errorf("got log %s, want why the servers ended", log)
	}
	return written
}
