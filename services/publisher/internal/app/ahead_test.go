package app_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// TestAside_AReplicaWhoseSourceIsBehindThePlaceLeavesTheLease has one meet a place after
// the clock of its source, which may be another cluster's than that of the stream.
func TestAside_AReplicaWhoseSourceIsBehindThePlaceLeavesTheLease(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	published(t, servers, source, 20)
	tokens := state(t, servers, "resume_tokens")
	right := only(t, tokens)
	edit(t, tokens, "$unset", "token", "")
	edit(t, tokens, "$unset", "position", "")
	edit(t, tokens, "$set", "startAt", bson.Timestamp{T: uint32(time.Now().Add(time.Hour).Unix()), I: 1})
	p := run(t, configured(servers))
	p.awaitHalt(t, "place in the future")
	p.await(t, "it to leave the lease", func(s status.Status) bool {
		return s.Role == "standby" && s.State == "halted" && s.HaltedSince != nil && strings.Contains(s.LastError, "place in the future")
	})
	for _, seen := range []string{"one look", "another"} {
		edit(t, state(t, servers, "streams"), "$set", "began.how", seen)
		p.await(t, "it to look at the stream", func(s status.Status) bool { return s.Began != nil && s.Began.How == seen })
	}
	put(t, tokens, right)
	edit(t, tokens, "$set", "term", int64(1000)) // as another that leads meanwhile
	edit(t, state(t, servers, "streams"), "$set", "term", int64(1000))
	source.write(t, 10, 5)
	p.await(t, "it to lead again, as its source is the stream's", func(s status.Status) bool { return leading(s) && s.Sent >= 10 })
	if got := strings.Count(p.log.String(), "standing for election again"); got != 1 {
		t.Errorf("it has stood for election %d times again, want once", got)
	}
}

// ahead gives a stream whose publishers are stopped a place after its source's clock.
func ahead(t *testing.T, servers testserver.Servers, by time.Duration) {
	t.Helper()
	tokens := state(t, servers, "resume_tokens")
	edit(t, tokens, "$unset", "token", "")
	edit(t, tokens, "$unset", "position", "")
	edit(t, tokens, "$set", "startAt", bson.Timestamp{T: uint32(time.Now().Add(by).Unix()), I: 1})
}

// TestAside_APlaceThatWasInTheFutureWaitsForADecision has the source's clock pass one at
// which a publisher has halted: what was written meanwhile is before it.
func TestAside_APlaceThatWasInTheFutureWaitsForADecision(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	published(t, servers, source, 20)
	back := time.Now().Add(-time.Minute).Format(time.RFC3339)
	ahead(t, servers, 3*time.Second)
	c := configured(servers)
	p := run(t, c)
	p.awaitHalt(t, "place in the future")
	source.write(t, 10, 5)
	var passed bson.Raw
	testserver.Eventually(t, "the source's clock to pass the place", func() bool {
		source.write(t, 1, 1)
		answer, err := testserver.Connect(t, servers.MongoURI).Database("admin").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}}).Raw()
		if err != nil {
			t.Fatal(err)
		}
		now, _, _ := answer.Lookup("$clusterTime", "clusterTime").TimestampOK()
		passed = only(t, state(t, servers, "resume_tokens"))
		at, _ := passed.Lookup("startAt").Timestamp()
		return now > at
	})
	for _, seen := range []string{"one look", "another"} {
		edit(t, state(t, servers, "streams"), "$set", "began.how", seen)
		p.await(t, "it to look at the stream", func(s status.Status) bool { return s.Began != nil && s.Began.How == seen })
	}
	if s := p.status(t); s.Role != "standby" || s.State != "halted" {
		t.Errorf("it is %s and %s once the place is past, want it to wait", s.Role, s.State)
	}
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	p = run(t, c)
	p.awaitHalt(t, "place in the future")
	two := configured(servers, split(2))
	if err := runCommand(t, two, io.Discard, "repartition"); err == nil || !strings.Contains(err.Error(), "checkpoint set") {
		t.Errorf("repartition = %v, want it to wait for a decision, too", err)
	}
	if err := runCommand(t, c, io.Discard, "checkpoint", "set", back, "--why", "test"); err != nil {
		t.Fatal(err)
	}
	p.await(t, "it to lead from where it was decided", leading)
	source.wantAll(t, source.drain(t, servers))
}

// TestMove_APlaceAfterTheSourcesClockIsNotTaken has commands meet one before a publisher
// does.
func TestMove_APlaceAfterTheSourcesClockIsNotTaken(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	published(t, servers, events(t, servers), 20)
	ahead(t, servers, time.Hour)
	c := configured(servers)
	if err := runCommand(t, c, io.Discard, "checkpoint", "accept", "--why", "test"); err == nil || !strings.Contains(err.Error(), "after the source's clock") {
		t.Errorf("accept = %v, want it refused", err)
	}
	if err := runCommand(t, configured(servers, split(2)), io.Discard, "repartition"); err == nil || !strings.Contains(err.Error(), "checkpoint set") {
		t.Errorf("repartition = %v, want it refused", err)
	}
}
