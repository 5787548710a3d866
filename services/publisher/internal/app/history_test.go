package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/settings"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// smallOplog is a sandbox whose operation log forgets soon.
func smallOplog(t *testing.T) testserver.Servers {
	t.Helper()
	return testserver.Start(t, "--oplog-entries", "60")
}

// loseHistory publishes some events, and writes more than the operation log
// holds while nobody publishes. It returns the source, and how many it wrote.
func loseHistory(t *testing.T, servers testserver.Servers) (*source, int64) {
	t.Helper()
	source := events(t, servers)
	p := run(t, configured(servers))
	p.await(t, "the publisher to lead", leading)
	source.write(t, 40, 5)
	p.await(t, "the events to be sent", sent(40))
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	source.write(t, 100, 5)
	return source, 140
}

func policy(decision string) func(*config.Config) {
	return func(c *config.Config) { c.OnHistoryLost = decision }
}

func TestHistory_LostHistoryStopsLoudlyByDefaultAndIsWrittenDown(t *testing.T) {
	t.Parallel()
	servers := smallOplog(t)
	loseHistory(t, servers)
	p := run(t, configured(servers))
	shown := p.await(t, "the publisher to halt", func(s status.Status) bool { return s.State == "halted" })
	if !strings.Contains(shown.LastError, "history lost") || shown.Sent != 0 {
		t.Errorf("status is %+v, want the reason and nothing sent", shown)
	}
	if len(shown.Gaps) != 1 || shown.Gaps[0].Decision != "stop" || shown.Gaps[0].From == "" || !shown.Gaps[0].ToTime.IsZero() {
		t.Errorf("gaps are %+v, want one with the decision to stop", shown.Gaps)
	}
	if code, _ := p.get(t, "/ready"); code != http.StatusServiceUnavailable {
		t.Errorf("/ready answers %d, want 503", code)
	}
	for _, want := range []string{`publisher_halted{reason="history lost"} 1`, `publisher_gaps{decision="stop"} 1`} {
		if _, metrics := p.get(t, "/metrics"); !strings.Contains(metrics, want) {
			t.Errorf("/metrics is without %s", want)
		}
	}
	testserver.Eventually(t, "the halt to be in the record", func() bool {
		why, _ := only(t, state(t, servers, "streams")).Lookup("halt").StringValueOK()
		return why != ""
	})
}

func TestHistory_HealingSendsWhatTheStreamLostWithTheSameIDsInOrder(t *testing.T) {
	t.Parallel()
	servers := smallOplog(t)
	source, _ := loseHistory(t, servers)
	p := run(t, configured(servers, policy("heal")))
	shown := p.await(t, "the publisher to follow the stream again", func(s status.Status) bool {
		return leading(s) && len(s.Gaps) == 1 && s.Copy == nil && s.Sent >= 100
	})
	if gap := shown.Gaps[0]; gap.Decision != "heal" || gap.Cause != "history lost" || gap.Instance != "a" || gap.ToTime.Before(gap.FromTime) {
		t.Errorf("the gap is %+v", gap)
	}
	source.write(t, 20, 5)
	source.wantAll(t, source.drain(t, servers))
}

func TestHistory_HealingLeavesOutWhatIsKnownToBeOlder(t *testing.T) {
	t.Parallel()
	servers := smallOplog(t)
	source := events(t, servers)
	var old []any
	for n := range 50 {
		old = append(old, bson.D{
			{Key: "_id", Value: bson.NewObjectIDFromTimestamp(time.Now().Add(-24 * time.Hour))},
			{Key: "aggregateId", Value: "old"},
			{Key: "version", Value: n + 1},
			{Key: "type", Value: "Old"},
		})
	}
	if _, err := source.InsertMany(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	healed, written := loseHistory(t, servers)
	p := run(t, configured(servers, policy("heal")))
	p.await(t, "the healing to end", func(s status.Status) bool {
		return leading(s) && len(s.Gaps) == 1 && s.Copy == nil && s.Sent >= written
	})
	got := healed.drain(t, servers)
	if len(got.versions["old"]) != 0 {
		t.Errorf("%d events of a day ago were sent again, want none", len(got.versions["old"]))
	}
	healed.wantAll(t, got)
}

// TestHistory_HealingSendsWhatWasCommittedLate has an event that says it was written some
// time before the place up to which all is published, and came after it.
func TestHistory_HealingSendsWhatWasCommittedLate(t *testing.T) {
	t.Parallel()
	servers := smallOplog(t)
	source, written := loseHistory(t, servers)
	if _, err := source.InsertOne(t.Context(), bson.D{
		{Key: "_id", Value: bson.NewObjectIDFromTimestamp(time.Now().Add(-time.Hour))},
		{Key: "aggregateId", Value: "late"},
		{Key: "version", Value: 1},
		{Key: "type", Value: "Late"},
	}); err != nil {
		t.Fatal(err)
	}
	source.written["late"] = []int{1}
	p := run(t, configured(servers, policy("heal"), func(c *config.Config) { c.HealMargin = 2 * time.Hour }))
	p.await(t, "the healing to end", func(s status.Status) bool {
		return leading(s) && len(s.Gaps) == 1 && s.Copy == nil && s.Sent > written
	})
	source.wantAll(t, source.drain(t, servers))
}

// TestHistory_ALeaderWhoseHistoryIsLostWhileItReadsDoesAsItIsTold has a source that is
// put back to an older copy of itself: it knows the token no more, at the next question
// and when the stream is opened again.
func TestHistory_ALeaderWhoseHistoryIsLostWhileItReadsDoesAsItIsTold(t *testing.T) {
	t.Parallel()
	for _, decision := range []string{"stop", "heal"} {
		t.Run(decision, func(t *testing.T) {
			t.Parallel()
			servers, kept := testserver.Start(t), testserver.Start(t) // fail points are the whole server's
			source := events(t, servers)
			order := bson.D{{Key: "aggregateId", Value: 1}, {Key: "version", Value: 1}, {Key: "_id", Value: 1}}
			if _, err := source.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: order}); err != nil {
				t.Fatal(err)
			}
			p := run(t, configured(servers, policy(decision), func(c *config.Config) { c.StateMongoURI = settings.Secret(kept.MongoURI) }))
			p.await(t, "the publisher to lead", leading)
			source.write(t, 20, 5)
			p.await(t, "the events to be sent", sent(20))
			forget := func(mode any) {
				if err := source.Database().Client().Database("admin").RunCommand(t.Context(), bson.D{
					{Key: "configureFailPoint", Value: "failCommand"},
					{Key: "mode", Value: mode},
					{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"getMore", "aggregate"}}, {Key: "errorCode", Value: 280}}},
				}).Err(); err != nil {
					t.Fatal(err)
				}
			}
			forget("alwaysOn")
			source.write(t, 20, 5)
			if entry := entered(t, kept, decision); entry.Lookup("cause").StringValue() != "history lost" {
				t.Errorf("the ledger says %s, want what was decided about lost history", entry)
			}
			if decision == config.DecideStop {
				p.await(t, "the publisher to halt", func(s status.Status) bool { return s.State == "halted" })
				return
			}
			forget("off")
			p.await(t, "the stream to be followed again", func(s status.Status) bool { return leading(s) && s.Copy == nil && s.Sent >= 40 })
			source.wantAll(t, source.drain(t, servers))
		})
	}
}

func TestHistory_ASnapshotAfterLostHistorySendsEverything(t *testing.T) {
	t.Parallel()
	servers := smallOplog(t)
	source, written := loseHistory(t, servers)
	p := run(t, configured(servers, policy("snapshot")))
	p.await(t, "the copy to end", func(s status.Status) bool {
		return leading(s) && len(s.Gaps) == 1 && s.Gaps[0].Decision == "snapshot" && s.Copy == nil && s.Sent >= written
	})
	source.write(t, 20, 5)
	source.wantAll(t, source.drain(t, servers))
}

func TestHistory_GoingOnFromNowSkipsAndSaysWhat(t *testing.T) {
	t.Parallel()
	servers := smallOplog(t)
	source, _ := loseHistory(t, servers)
	p := run(t, configured(servers, policy("now")))
	shown := p.await(t, "the publisher to follow the stream again", func(s status.Status) bool { return leading(s) && len(s.Gaps) == 1 })
	if gap := shown.Gaps[0]; gap.Decision != "now" || gap.FromTime.IsZero() || gap.ToTime.IsZero() {
		t.Errorf("the gap is %+v, want from when to when", gap)
	}
	source.write(t, 30, 5)
	p.await(t, "the later events to be sent", func(s status.Status) bool { return s.Sent >= 30 })
	if got := p.status(t).Sent; got != 30 {
		t.Errorf("%d events were sent, want the 30 later ones", got)
	}
}

func TestHistory_ASnapshotStartMissesNothingThatIsWrittenMeanwhile(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	source.write(t, 600, 30)
	p := run(t, configured(servers, func(c *config.Config) { c.StartAt, c.SnapshotRate = "snapshot", 1000 }))
	shown := p.await(t, "the copy to be under way", func(s status.Status) bool { return s.Copy != nil && s.Copy.SecondsLeft != nil })
	if shown.Copy.Total != 600 || shown.Copy.Copied > 600 || shown.Copy.Cause != "START_AT=snapshot" {
		t.Errorf("the copy is %+v, want its progress towards 600", shown.Copy)
	}
	source.write(t, 300, 30) // while the copy is made
	p.await(t, "the copy to end", func(s status.Status) bool { return s.Copy == nil && s.Sent >= 600 })
	source.write(t, 100, 30)
	source.wantAll(t, source.drain(t, servers))
}

func TestHistory_AStandbyTakesACopyUpWhereItsLeaderStopped(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	source.write(t, 900, 30)
	slowly := func(c *config.Config) { c.StartAt, c.SnapshotRate = "snapshot", 600 }
	first := run(t, configured(servers, slowly, named("a")))
	first.await(t, "a part to be copied", func(s status.Status) bool { return s.Copy != nil && s.Copy.Copied >= 100 })
	second := run(t, configured(servers, slowly, named("b")))
	if err := first.quit(); err != nil {
		t.Fatal(err)
	}
	copied := first.counted(t)
	second.await(t, "the copy to end", func(s status.Status) bool { return leading(s) && s.Copy == nil && s.Sent > 0 && s.InFlight == 0 })
	if got := second.status(t).Sent; copied+got != 900 {
		t.Errorf("%d and %d documents were copied, want 900 together: none twice after a stop in order", copied, got)
	}
	source.wantAll(t, source.drain(t, servers))
}

func TestHistory_ChangedOptionsOfTheStreamStopItWithTheRemedy(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	p := run(t, configured(servers))
	p.await(t, "the publisher to lead", leading)
	source.write(t, 10, 2)
	p.await(t, "the events to be sent", sent(10))
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	filtered := run(t, configured(servers, func(c *config.Config) { c.SourceFilter = `{"fullDocument.type": "OrderPlaced"}` }))
	shown := filtered.await(t, "the publisher to halt", func(s status.Status) bool { return s.State == "halted" })
	for _, want := range []string{"stream options changed", "SOURCE_FILTER", "publisher checkpoint reset"} {
		if !strings.Contains(shown.LastError, want) {
			t.Errorf("last error is %q, without %q", shown.LastError, want)
		}
	}
	if err := filtered.quit(); err != nil {
		t.Fatal(err)
	}
	run(t, configured(servers)).await(t, "the publisher to lead with the options restored", leading)
}
