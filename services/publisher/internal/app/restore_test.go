package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// unmappable inserts an event without an aggregate, which is parked.
func (s *source) unmappable(t *testing.T) {
	t.Helper()
	if _, err := s.InsertOne(t.Context(), bson.D{{Key: "type", Value: "OrderPlaced"}, {Key: "version", Value: 1}}); err != nil {
		t.Fatal(err)
	}
}

// TestRestore_OfTheSameTermLosesNothingThatWasParkedSince puts back a state
// database of an earlier moment of the term under its leader, without the change
// that was parked since.
func TestRestore_OfTheSameTermLosesNothingThatWasParkedSince(t *testing.T) {
	t.Parallel()
	for name, interval := range map[string]time.Duration{
		"after a save": 20 * time.Millisecond, "before any save": time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			c := configured(servers, func(c *config.Config) { c.CheckpointInterval = interval })
			p := run(t, c)
			p.await(t, "the publisher to lead", leading)
			source.write(t, 20, 5)
			p.await(t, "the events to be sent", sent(20))
			checkpoint, record := only(t, state(t, servers, "resume_tokens")), only(t, state(t, servers, "streams"))
			source.unmappable(t)
			p.await(t, "the change to be parked", func(s status.Status) bool { return s.Parked == 1 && s.InFlight == 0 })
			source.write(t, 20, 5)
			p.await(t, "the later events to be sent", sent(40))
			put(t, state(t, servers, "streams"), record)
			put(t, state(t, servers, "resume_tokens"), checkpoint)
			wipe(t, state(t, servers, "parked_changes"))
			source.write(t, 20, 5)
			p.awaitHalt(t, "checkpoint went back", "publisher checkpoint accept")
			if _, err := say[command.MoveView](t, c, "checkpoint", "accept", "--why", "restored"); err != nil {
				t.Fatal(err)
			}
			p.await(t, "the change to be parked again", func(s status.Status) bool { return leading(s) && s.Parked >= 1 })
			if n, err := state(t, servers, "parked_changes").CountDocuments(t.Context(), bson.D{}); err != nil || n != 1 {
				t.Errorf("%d changes are parked, %v, want the one that the backup did not have", n, err)
			}
			source.wantAll(t, source.drain(t, servers))
		})
	}
}

// TestRestore_OfTheRecordAloneIsSeen has a leader whose saves all succeed: only
// the record went back.
func TestRestore_OfTheRecordAloneIsSeen(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	_, record := published(t, servers, source, 20)
	p := run(t, configured(servers))
	p.await(t, "the publisher to lead", leading)
	put(t, state(t, servers, "streams"), record)
	p.awaitHalt(t, "stream record lost", fmt.Sprintf("its record says %d", record.Lookup("term").Int64()), "publisher checkpoint accept")
}

// TestStandby_ThatHasSeenTheStreamDoesNotBeginItAnew empties the state database
// while a standby waits: one that started beside a leader, and one that started
// before there was a stream.
func TestStandby_ThatHasSeenTheStreamDoesNotBeginItAnew(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{false, true} {
		t.Run(map[bool]string{false: "started beside a leader", true: "started before the stream"}[early], func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			var record bson.Raw
			if early {
				_, record = published(t, servers, source, 20)
				for _, name := range []string{"resume_tokens", "streams", "stream_gaps"} {
					wipe(t, state(t, servers, name))
				}
			} else {
				published(t, servers, source, 20)
			}
			holdLease(t, servers, "")
			// Beside a leader the one look at the start is enough, and comes before it
			// could lead: the next would be in an hour.
			standby := run(t, configured(servers, named("b"), func(c *config.Config) {
				if !early {
					c.LeaseTTL, c.LeaseRenewDeadline, c.LeaseHeartbeat = 3*time.Hour, 2*time.Hour, time.Hour
				}
			}))
			standby.await(t, "b to stand by", func(s status.Status) bool { return s.State == "standing by" && s.Leader == "somebody" })
			if early {
				put(t, state(t, servers, "streams"), record)
			}
			standby.await(t, "b to have seen the stream", func(s status.Status) bool { return s.Began != nil })
			source.write(t, 20, 5)
			for _, name := range []string{"resume_tokens", "streams", "stream_gaps", "leader_leases"} {
				wipe(t, state(t, servers, name))
			}
			shown := standby.awaitHalt(t, "stream record lost", "publisher checkpoint set --new PLACE --why TEXT")
			if shown.Sent != 0 || only(t, state(t, servers, "stream_gaps")).Lookup("fromTime").Time().Unix() <= 0 {
				t.Errorf("status is %+v, want nothing sent, and a beginning in the ledger", shown)
			}
		})
	}
}

// holdLease has somebody hold the lease of the stream, or of a part of both, for
// an hour.
func holdLease(t *testing.T, servers testserver.Servers, part string) {
	t.Helper()
	_, err := state(t, servers, "leader_leases").ReplaceOne(t.Context(), bson.D{{Key: "_id", Value: "publisher" + part}}, bson.D{
		{Key: "leaderId", Value: "somebody"},
		{Key: "incarnation", Value: "1"},
		{Key: "tenure", Value: int64(1)},
		{Key: "stream", Value: "shop.events" + part},
		{Key: "heartbeatAt", Value: time.Now()},
		{Key: "expiresAt", Value: time.Now().Add(time.Hour)},
	}, options.Replace().SetUpsert(true))
	if err != nil {
		t.Fatal(err)
	}
}

func TestStream_AFirstStartInTheFutureIsMendedByCorrectingIt(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	first := run(t, configured(servers, func(c *config.Config) { c.StartAt = time.Now().Add(time.Hour).Format(time.RFC3339) }))
	status := first.awaitHalt(t, "place in the future", "correct START_AT")
	if strings.Contains(status.LastError, "publisher checkpoint") {
		t.Errorf("last error is %q, and no command can do anything yet", status.LastError)
	}
	if err := first.quit(); err != nil {
		t.Fatal(err)
	}
	run(t, configured(servers)).await(t, "the publisher to lead", leading)
}

// TestStart_WaitsUntilTheStreamCanBeOpened has a source that refuses it: a process
// that may not read the stream must not lead.
func TestStart_WaitsUntilTheStreamCanBeOpened(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	failing := func(mode any) {
		t.Helper()
		err := testserver.Connect(t, servers.MongoURI).Database("admin").RunCommand(t.Context(), bson.D{
			{Key: "configureFailPoint", Value: "failCommand"},
			{Key: "mode", Value: mode},
			{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"aggregate"}}, {Key: "errorCode", Value: 13}}},
		}).Err()
		if err != nil {
			t.Fatal(err)
		}
	}
	failing("alwaysOn")
	p := run(t, configured(servers))
	p.await(t, "the publisher to wait and say why", func(s status.Status) bool {
		return s.State == "starting" && strings.Contains(s.LastError, "try the change stream of shop.events")
	})
	if code, _ := p.get(t, "/ready"); code != http.StatusServiceUnavailable {
		t.Errorf("/ready answers %d, want 503", code)
	}
	failing("off")
	p.await(t, "the publisher to lead", leading)
}

func TestStream_AMissingCheckpointHasABeginningInTheLedger(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	p := run(t, configured(servers))
	p.await(t, "the publisher to lead", leading)
	source.write(t, 20, 5)
	p.await(t, "the events to be sent", sent(20))
	testserver.Eventually(t, "the checkpoint to be saved", func() bool {
		view, err := say[command.CheckpointView](t, configured(servers), "checkpoint", "show")
		return err == nil && view.Position != ""
	})
	wipe(t, state(t, servers, "resume_tokens"))
	source.write(t, 20, 5)
	status := p.awaitHalt(t, "checkpoint missing")
	if gap := status.Gaps[len(status.Gaps)-1]; gap.FromTime.Unix() <= 0 || gap.From == "" {
		t.Errorf("the ledger says %+v, want it to begin where the leader was", gap)
	}
}
