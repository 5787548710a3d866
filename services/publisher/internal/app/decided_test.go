package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/settings"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// TestReset_ThatDiedIsEndedByTheLeader has a command end behind its move.
func TestReset_ThatDiedIsEndedByTheLeader(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	published(t, servers, events(t, servers), 20)
	moved := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	gave := bson.D{{Key: "$set", Value: bson.D{{Key: "anew", Value: true}, {Key: "updatedAt", Value: moved}}}, {Key: "$unset", Value: bson.D{{Key: "token", Value: ""}, {Key: "position", Value: ""}, {Key: "startAt", Value: ""}}}}
	if _, err := state(t, servers, "resume_tokens").UpdateMany(t.Context(), bson.D{}, gave); err != nil {
		t.Fatal(err)
	}
	kept := mongostate.New(testserver.Connect(t, servers.MongoURI), "change_relay")
	if err := kept.Gaps("shop.events").Enter(t.Context(), mongostate.Gap{FromTime: moved, Cause: "checkpoint reset", Decision: mongostate.Reset, At: moved, Term: 2}); err != nil {
		t.Fatal(err)
	}
	run(t, configured(servers)).await(t, "the stream to begin anew", leading)
	if to, ok := entered(t, servers, mongostate.Reset).Lookup("toTime").TimeOK(); !ok || !to.After(moved) {
		t.Errorf("the entry of the reset goes up to %v, %v, want where the stream began", to, ok)
	}
	var began struct{ FromTime time.Time }
	which := bson.D{{Key: "decision", Value: mongostate.Began}, {Key: "cause", Value: "checkpoint reset"}}
	if err := state(t, servers, "stream_gaps").FindOne(t.Context(), which).Decode(&began); err != nil || !began.FromTime.Equal(moved) {
		t.Errorf("the stream began anew since %v, %v, want %v, when the place was given up", began.FromTime, err, moved)
	}
}

// TestReset_BeginsAnewAsThePublisherIsThatDoesSo resets with settings, and a source, that
// the publishers then do not have.
func TestReset_BeginsAnewAsThePublisherIsThatDoesSo(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(c *config.Config, other testserver.Servers){
		"another source": func(c *config.Config, other testserver.Servers) { c.MongoURI = settings.Secret(other.MongoURI) },
		"another path":   func(c *config.Config, _ testserver.Servers) { byOrder(c) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers, other := testserver.Start(t), testserver.Start(t)
			events(t, servers).write(t, 1, 1)
			events(t, other).write(t, 1, 1)
			c := configured(servers, split(2))
			begun(t, c)
			if _, err := say[command.MoveView](t, c, "checkpoint", "reset", "--why", "test"); err != nil {
				t.Fatal(err)
			}
			change(&c, other)
			begun(t, c)
		})
	}
}

// TestStream_ARetiredCheckpointIsNotAdopted has nothing left of a stream but a checkpoint
// that a repartition of a release without claims has retired.
func TestStream_ARetiredCheckpointIsNotAdopted(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	published(t, servers, events(t, servers), 20)
	edit(t, state(t, servers, "resume_tokens"), "$set", "retired", true)
	edit(t, state(t, servers, "resume_tokens"), "$unset", "claim", "")
	wipe(t, state(t, servers, "streams"))
	wipe(t, state(t, servers, "stream_gaps"))
	run(t, configured(servers)).awaitHalt(t, "checkpoint without a place", "publisher checkpoint set")
}

// TestAccept_TheRestOfACopyIsNotMadeUnderOtherOptions has a stream stand in the middle
// of a copy that was begun with others.
func TestAccept_TheRestOfACopyIsNotMadeUnderOtherOptions(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	published(t, servers, events(t, servers), 20)
	begun := bson.D{{Key: "cause", Value: "test"}, {Key: "copied", Value: int64(1)}, {Key: "total", Value: int64(20)}, {Key: "beganAt", Value: time.Now()}, {Key: "done", Value: false}}
	tokens := state(t, servers, "resume_tokens")
	edit(t, tokens, "$set", "copy", begun)
	edit(t, tokens, "$set", "startAt", bson.Timestamp{T: uint32(time.Now().Unix()), I: 1})
	edit(t, tokens, "$unset", "token", "")
	edit(t, tokens, "$unset", "position", "")
	edit(t, tokens, "$set", "options", "of others")
	_, err := say[command.MoveView](t, configured(servers), "checkpoint", "accept", "--why", "test")
	if err == nil || !strings.Contains(err.Error(), "in the middle of a copy under other settings") {
		t.Errorf("checkpoint accept = %v, want it refused", err)
	}
}

// TestAccept_AReplacementThatIsYetToBeReadIsInTheLedger has a collection replaced while
// nobody publishes, which is accepted before the stream comes to it.
func TestAccept_AReplacementThatIsYetToBeReadIsInTheLedger(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	published(t, servers, source, 20)
	published(t, servers, source, 20) // the first began before there was a collection
	source.swap(t)
	p := run(t, configured(servers))
	p.awaitHalt(t, "source collection replaced")
	if _, err := say[command.MoveView](t, configured(servers), "checkpoint", "accept", "--why", "test"); err != nil {
		t.Fatal(err)
	}
	source.write(t, 10, 5)
	p.await(t, "what is written since to be sent", func(s status.Status) bool { return leading(s) && s.Sent >= 10 })
	testserver.Eventually(t, "the change that was accepted to be in the ledger", func() bool {
		n, err := state(t, servers, "stream_gaps").CountDocuments(t.Context(), bson.D{
			{Key: "decision", Value: mongostate.Accept}, {Key: "cause", Value: "source collection replaced"},
		})
		return err == nil && n >= 1
	})
}

// TestRestore_WhatIsDecidedAboutAnOlderRecordHolds has a leader whose record is that of
// several terms before, and an operator take that over.
func TestRestore_WhatIsDecidedAboutAnOlderRecordHolds(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	_, record := published(t, servers, source, 20)
	c := configured(servers, func(c *config.Config) { c.InstanceID = "b" })
	for range 3 {
		p := run(t, c)
		p.await(t, "the next to lead", leading)
		if err := p.quit(); err != nil {
			t.Fatal(err)
		}
	}
	p := run(t, c)
	p.await(t, "the last to lead", leading)
	put(t, state(t, servers, "streams"), record)
	checkpoints := state(t, servers, "resume_tokens")
	term := record.Lookup("term").Int64() // above 1 where a lease was lost on the way
	p.awaitHalt(t, "stream record lost", fmt.Sprintf("its record says %d", term))
	edit(t, checkpoints, "$set", "term", term) // restored as well
	if _, err := say[command.MoveView](t, c, "checkpoint", "accept", "--why", "restored"); err != nil {
		t.Fatal(err)
	}
	source.write(t, 10, 5)
	p.await(t, "the stream to go on", func(s status.Status) bool { return leading(s) && s.Sent >= 10 })
}

// TestParked_WhatAPartitionInUseHasLostIsEnteredByItsLeader loses what the second of two
// partitions has parked.
func TestParked_WhatAPartitionInUseHasLostIsEnteredByItsLeader(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, split(2), patient)
	p := run(t, c)
	p.awaitOverview(t, "both partitions to be led", leads(2))
	_, err := events(t, servers).InsertOne(t.Context(), bson.D{{Key: "aggregateId", Value: customerOf(1)}, {Key: "version", Value: 1}, {Key: "kind", Value: "OrderPlaced"}})
	if err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "the change to be parked, and counted", func() bool {
		n, err := state(t, servers, "resume_tokens").CountDocuments(t.Context(), bson.D{{Key: "_id", Value: "shop.events-1of2"}, {Key: "parked.count", Value: int64(1)}})
		return err == nil && n == 1
	})
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	lose(t, servers, 1)
	begun(t, c)
	if got := lostEntries(t, servers); len(got) != 1 {
		t.Errorf("the ledger says %+v, want one entry", got)
	}
}
