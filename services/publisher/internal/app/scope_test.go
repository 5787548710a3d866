package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/app"
	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/settings"
	"changerelay/services/publisher/internal/testserver"
)

func TestCommand_OnlyTheStreamThatRunsIsChanged(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	p := run(t, configured(servers, split(2)))
	p.awaitOverview(t, "both partitions to be led", leads(2))
	source.write(t, 50, 10)
	p.awaitOverview(t, "the events to be sent", func(o app.Overview) bool { return o.Sent >= 50 })
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		change func(*config.Config)
		want   string
	}{
		"without PARTITIONS":        {func(*config.Config) {}, "has 2 partitions, and PARTITIONS is 1"},
		"with another number":       {split(3), "has 2 partitions, and PARTITIONS is 3"},
		"with another stream":       {func(c *config.Config) { c.Partitions, c.StreamName = 2, "shop.other" }, "nothing is known"},
		"with another lease":        {func(c *config.Config) { c.Partitions, c.LeaseName = 2, "other" }, "LEASE_NAME=publisher"},
		"with another database":     {func(c *config.Config) { c.Partitions, c.StateDatabase = 2, "other" }, "nothing is known"},
		"without, although --new":   {func(*config.Config) {}, "PARTITIONS is 1"},
		"another lease, --new, too": {func(c *config.Config) { c.Partitions, c.LeaseName = 2, "other" }, "LEASE_NAME=publisher"},
	} {
		for _, args := range [][]string{
			{"checkpoint", "reset"}, {"checkpoint", "set", "2026-01-01T00:00:00Z"}, {"checkpoint", "accept"},
		} {
			args = append(args, "--why", "test", "--force")
			if strings.Contains(name, "--new") && args[1] != "accept" {
				args = append(args, "--new")
			}
			if _, err := say[any](t, configured(servers, tt.change), args...); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %q = %v, want %q", name, args, err, tt.want)
			}
		}
	}
	if n, err := state(t, servers, "resume_tokens").CountDocuments(t.Context(), bson.D{}); err != nil || n != 2 {
		t.Errorf("%d checkpoints, %v, want those of the two partitions alone", n, err)
	}
	again := run(t, configured(servers, split(2)))
	again.awaitOverview(t, "both partitions to be led again", leads(2))
	source.write(t, 50, 10)
	source.wantAll(t, source.drain(t, servers))
}

func TestCommand_ADryRunChangesNothing(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	checkpoint, record := published(t, servers, events(t, servers), 20)
	for _, args := range [][]string{
		{"checkpoint", "reset", "--dry-run"}, {"checkpoint", "set", "2026-01-01T00:00:00Z", "--dry-run", "--json"}, {"checkpoint", "accept", "--dry-run"},
	} {
		view, err := say[command.MoveView](t, configured(servers), args...)
		if err != nil || !view.DryRun || view.Before.Position == "" || view.Action != args[1] {
			t.Errorf("%q = %+v, %v, want what it would do", args, view, err)
		}
	}
	if _, err := say[any](t, configured(servers, split(4)), "repartition", "--dry-run", "--json"); err != nil {
		t.Errorf("repartition --dry-run = %v", err)
	}
	if got := only(t, state(t, servers, "resume_tokens")); got.String() != checkpoint.String() {
		t.Errorf("the checkpoint is %s, was %s", got, checkpoint)
	}
	if got := only(t, state(t, servers, "streams")); got.String() != record.String() {
		t.Errorf("the record is %s, was %s", got, record)
	}
}

func TestCommand_APlaceAfterTheSourcesClockIsRefused(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	published(t, servers, events(t, servers), 20)
	ahead := time.Now().Add(time.Hour)
	stamp := fmt.Sprintf("%08x00000001", ahead.Unix())
	for _, place := range []string{ahead.Format(time.RFC3339), stamp + ".82" + strings.ToUpper(stamp) + "2B0229296E04"} {
		if _, err := say[any](t, configured(servers), "checkpoint", "set", "--why", "test", place); err == nil || !strings.Contains(err.Error(), "after the source's clock") {
			t.Errorf("checkpoint set %s = %v, want it refused", place, err)
		}
	}
}

// TestCommand_ThePresentIsNoPlaceAfterTheClockOfAnIdleSource waits until the second
// of the last change is over.
func TestCommand_ThePresentIsNoPlaceAfterTheClockOfAnIdleSource(t *testing.T) {
	t.Parallel()
	servers, idle := testserver.Start(t), testserver.Start(t)
	c := configured(idle, func(c *config.Config) { c.StateMongoURI = settings.Secret(servers.MongoURI) })
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	began := time.Now().Unix()
	testserver.Eventually(t, "a second to pass", func() bool { return time.Now().Unix() > began+1 })
	place := time.Now().Format(time.RFC3339)
	if _, err := say[command.MoveView](t, c, "checkpoint", "set", place, "--why", "test"); err != nil {
		t.Fatal(err)
	}
	if view, err := say[command.StreamView](t, c, "status"); err != nil || len(view.Warnings) > 0 {
		t.Errorf("status = %+v, %v, want no warning", view, err)
	}
	again := run(t, c)
	again.await(t, "the publisher to lead again", leading)
	events(t, idle).write(t, 10, 2)
	again.await(t, "the events to be sent", sent(10))
}

func TestStream_APlaceAfterTheSourcesClockHalts(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	ahead := time.Now().Add(time.Hour)
	first := run(t, configured(servers, func(c *config.Config) { c.StartAt = ahead.Format(time.RFC3339) }))
	first.awaitHalt(t, "place in the future", "START_AT")
	if err := first.quit(); err != nil {
		t.Fatal(err)
	}
	wipe(t, state(t, servers, "stream_gaps")) // a new database as far as the next is concerned
	source := events(t, servers)
	published(t, servers, source, 20)
	edit := bson.D{
		{Key: "$set", Value: bson.D{{Key: "startAt", Value: bson.Timestamp{T: uint32(ahead.Unix()), I: 1}}}},
		{Key: "$unset", Value: bson.D{{Key: "token", Value: ""}, {Key: "position", Value: ""}}},
	}
	if _, err := state(t, servers, "resume_tokens").UpdateOne(t.Context(), bson.D{}, edit); err != nil {
		t.Fatal(err)
	}
	view, err := say[command.StreamView](t, configured(servers), "status")
	if err != nil || view.LagSeconds != nil || len(view.Warnings) == 0 {
		t.Errorf("status = %+v, %v, want a warning and no lag", view, err)
	}
	run(t, configured(servers)).awaitHalt(t, "place in the future", "publisher checkpoint set PLACE")
}
