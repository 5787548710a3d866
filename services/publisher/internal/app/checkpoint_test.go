package app_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/cli"
	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// say runs a command and decodes the first thing that it prints.
func say[T any](t *testing.T, c config.Config, args ...string) (T, error) {
	t.Helper()
	var stdout bytes.Buffer
	var first T
	err := runCommand(t, c, &stdout, args...)
	if err == nil {
		if err := json.NewDecoder(&stdout).Decode(&first); err != nil {
			t.Fatalf("%q printed %s: %v", args, &stdout, err)
		}
	}
	return first, err
}

func TestCheckpoint_StatusTellsOfTheLeaderFromAnyMachine(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	before, err := say[command.StreamView](t, c, "status", "--json")
	if err != nil || before.Leader != "" || before.Checkpoint.Exists || before.Term != 0 {
		t.Errorf("status before anything ran = %+v, %v", before, err)
	}
	p := run(t, configured(servers, named("leader")))
	p.await(t, "the publisher to lead", leading)
	events(t, servers).write(t, 10, 2)
	p.await(t, "the events to be sent", sent(10))
	testserver.Eventually(t, "the checkpoint to be saved", func() bool {
		got, err := say[command.StreamView](t, c, "status")
		return err == nil && got.Leader == "leader" && got.Term == 1 && got.LeaseSeconds != nil && *got.LeaseSeconds > 0 &&
			got.Checkpoint.Position != "" && got.LagSeconds != nil && *got.LagSeconds < 60
	})
}

func TestCheckpoint_ACheckpointIsNotMovedBesideALeader(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	for _, args := range [][]string{
		{"checkpoint", "reset", "--why", "test"},
		{"checkpoint", "set", time.Now().Add(-time.Minute).Format(time.RFC3339), "--why", "test"},
	} {
		if _, err := say[any](t, c, args...); err == nil || !strings.Contains(err.Error(), `held by "a"`) {
			t.Errorf("%q = %v, want it refused while a leads", args, err)
		}
	}
	if view, err := say[command.CheckpointView](t, c, "checkpoint", "show"); err != nil || view.Term != 1 {
		t.Errorf("checkpoint show = %+v, %v, want it in term 1 as before", view, err)
	}
}

func TestCheckpoint_AForcedMoveIsFollowedByTheLeaderInALaterTerm(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers)
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	source := events(t, servers)
	source.write(t, 10, 1)
	p.await(t, "the events to be sent", sent(10))
	var first string
	testserver.Eventually(t, "the checkpoint to be saved", func() bool {
		view, err := say[command.CheckpointView](t, c, "checkpoint", "show")
		first = view.Position
		return err == nil && first != ""
	})
	source.write(t, 20, 4)
	p.await(t, "the later events to be sent", sent(30))
	testserver.Eventually(t, "that to be saved", func() bool {
		view, err := say[command.CheckpointView](t, c, "checkpoint", "show")
		return err == nil && view.Position > first
	})
	if _, err := say[any](t, c, "checkpoint", "set", "--force", "--why", "send it all again", "--who", "ops", first); err != nil {
		t.Fatal(err)
	}
	source.write(t, 1, 1) // the leader saves, and finds out
	p.await(t, "the leader to go on from there", func(s status.Status) bool { return s.Term >= 3 && s.State == "publishing" && s.Sent >= 51 })
	var logged struct {
		Action, Who, Why string
		Forced, Done     bool
		Term             int64
		Before, After    struct{ Position string }
	}
	log := testserver.Connect(t, servers.MongoURI).Database("change_relay").Collection("checkpoint_log")
	if err := log.FindOne(t.Context(), bson.D{}).Decode(&logged); err != nil {
		t.Fatal(err)
	}
	if logged.Action != "set" || logged.Who != "ops" || logged.Why != "send it all again" || !logged.Forced || !logged.Done ||
		logged.Term != 2 || logged.Before.Position <= first || logged.After.Position != first {
		t.Errorf("the log says %+v", logged)
	}
}

func TestCheckpoint_AResetLetsTheConfigurationDecideWhereToBegin(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	c := configured(servers)
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	source.write(t, 30, 3)
	p.await(t, "the events to be sent", sent(30))
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	if _, err := say[any](t, c, "checkpoint", "reset", "--why", "other options"); err != nil {
		t.Fatal(err)
	}
	if view, err := say[command.CheckpointView](t, c, "checkpoint", "show", "--json"); err != nil || view.Position != "" || view.StartAt != nil || view.Options != "" {
		t.Errorf("checkpoint show = %+v, %v, want no place", view, err)
	}
	again := run(t, configured(servers, func(c *config.Config) { c.StartAt = "snapshot" }))
	again.await(t, "everything to be copied", func(s status.Status) bool { return leading(s) && s.Sent == 30 && s.Copy == nil })
}

func TestCheckpoint_ArgumentsOfCheckpointCommandsAreChecked(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"checkpoint", "set", "--why", "x"},
		{"checkpoint", "set", "yesterday", "--why", "x"},
		{"checkpoint", "set", "2026-01-01T00:00:00Z"},
		{"checkpoint", "set", "--why", "x", "2206-01-01T00:00:00Z"},
		{"checkpoint", "set", "--why", "x", "655300000000000a.0000000000000007"},   // of a copied document
		{"checkpoint", "set", "--why", "x", "655300000000000a.826553000000000B2B"}, // of another time
		{"checkpoint", "accept"},
		{"checkpoint", "accept", "--why", "x", "now"},
		{"checkpoint", "accept", "--why", "x", "--new"},
		{"repartition", "2"},
		{"repartition", "--from", "-1"},
		{"checkpoint", "reset"},
		{"checkpoint", "reset", "now", "--why", "x"},
		{"checkpoint", "reset", "--what"},
		{"checkpoint", "show", "x"},
		{"status", "x"},
	} {
		if _, err := say[any](t, config.Config{}, args...); !errors.Is(err, cli.ErrUsage) {
			t.Errorf("%q = %v, want it refused for its arguments", args, err)
		}
	}
}
