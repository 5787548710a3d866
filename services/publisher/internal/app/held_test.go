package app_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// heldMove makes a move whose decision is held on its way to the record. It returns
// what lets it go, once it is held, and waits until it has ended.
func heldMove(t *testing.T, servers testserver.Servers, move mongostate.Move) (letGo func() error) {
	t.Helper()
	held, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	var once sync.Once
	client, err := mongo.Connect(options.Client().ApplyURI(servers.MongoURI).SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			if in, _ := e.Command.Lookup("update").StringValueOK(); in == "streams" {
				once.Do(func() {
					close(held)
					<-release
				})
			}
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	move.Stream, move.Who, move.Why, move.At = "shop.events", "ann", "test", time.Now()
	go func() {
		_, err := mongostate.New(client, "change_relay").MoveCheckpoint(t.Context(), move)
		ended <- err
	}()
	<-held
	return func() error {
		close(release)
		return <-ended
	}
}

// TestMove_WhoseDecisionComesLateIsNotThatOfALaterTerm holds the last step of a
// command, until a leader has gone on in a later term.
func TestMove_WhoseDecisionComesLateIsNotThatOfALaterTerm(t *testing.T) {
	t.Parallel()
	lead := func(t *testing.T) (testserver.Servers, *source, *process) {
		t.Helper()
		servers := testserver.Start(t)
		source := events(t, servers)
		p := run(t, configured(servers))
		p.await(t, "the publisher to lead", leading)
		source.write(t, 10, 2)
		p.await(t, "the events to be sent", sent(10))
		return servers, source, p
	}
	goOn := func(t *testing.T, source *source, p *process) {
		t.Helper()
		before := p.status(t).Term
		source.write(t, 1, 1)
		p.await(t, "it to go on in a later term", func(s status.Status) bool { return leading(s) && s.Term > before })
	}
	t.Run("reset", func(t *testing.T) {
		t.Parallel()
		servers, source, p := lead(t)
		letGo := heldMove(t, servers, mongostate.Move{Action: "reset", To: &checkpoint.Place{Anew: true}})
		goOn(t, source, p)
		if err := letGo(); err != nil {
			t.Fatal(err)
		}
		record := only(t, state(t, servers, "streams"))
		if record.Lookup("confirmed").AsInt64() != p.status(t).Term || record.Lookup("decidedAt").Time().IsZero() {
			t.Errorf("the record is %s, want the later term confirmed, and that there was a decision", record)
		}
		if err := p.quit(); err != nil {
			t.Fatal(err)
		}
		run(t, configured(servers, documents)).awaitHalt(t, "stream settings changed", `MODE was "events"`)
	})
	t.Run("reset, and retired", func(t *testing.T) {
		t.Parallel()
		servers, _, p := lead(t)
		if err := p.quit(); err != nil {
			t.Fatal(err)
		}
		letGo := heldMove(t, servers, mongostate.Move{Action: "reset", To: &checkpoint.Place{Anew: true}})
		edit(t, state(t, servers, "streams"), "$set", "retired", true)
		if err := letGo(); err != nil {
			t.Fatal(err)
		}
		if record := only(t, state(t, servers, "streams")); !record.Lookup("retired").Boolean() {
			t.Errorf("the record is %s, want it retired", record)
		}
	})
	t.Run("accept", func(t *testing.T) {
		t.Parallel()
		servers, source, p := lead(t)
		letGo := heldMove(t, servers, mongostate.Move{Action: "accept", KeepOptions: true, Settings: checkpoint.Settings{"MODE": "documents"}})
		goOn(t, source, p)
		if err := letGo(); err != nil {
			t.Fatal(err)
		}
		if record := only(t, state(t, servers, "streams")); record.Lookup("settings", "MODE").StringValue() != "documents" {
			t.Errorf("the record is %s, want what was accepted", record)
		}
		p.await(t, "the leader to halt", func(s status.Status) bool { return s.State == "halted" && strings.Contains(s.LastError, "MODE was") })
	})
}

// TestMove_OfALostRecordThatDiedDecidesNothing has a command make the record that
// was lost, and die: before it claims the checkpoint, or after it has moved it.
func TestMove_OfALostRecordThatDiedDecidesNothing(t *testing.T) {
	t.Parallel()
	for _, dies := range []string{"findAndModify", "update"} {
		t.Run(dies, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			published(t, servers, events(t, servers), 10)
			wipe(t, state(t, servers, "streams"))
			refuse(t, servers, dies)
			set := []string{"checkpoint", "set", time.Now().Add(-time.Minute).Format(time.RFC3339), "--why", "test"}
			if _, err := say[command.MoveView](t, configured(servers), set...); err == nil {
				t.Fatal("the command ended well, want it to have died")
			}
			refuse(t, servers, "")
			elsewhere := testserver.Start(t)
			other := configured(servers, func(c *config.Config) { c.MongoURI = configured(elsewhere).MongoURI })
			p := run(t, other)
			p.awaitHalt(t, "stream record lost", "did not end")
			if err := p.quit(); err != nil {
				t.Fatal(err)
			}
			if err := runCommand(t, configured(servers, split(2)), &syncBuffer{}, "repartition"); err == nil || !strings.Contains(err.Error(), "publisher checkpoint accept") {
				t.Errorf("repartition = %v, want it refused", err)
			}
			if _, err := say[command.MoveView](t, configured(servers), set...); err != nil {
				t.Fatal(err)
			}
			run(t, configured(servers)).await(t, "the stream to go on", leading)
		})
	}
}

// TestMove_OfALostStreamGoesOnAboveEveryTermThatWas loses record and checkpoint of a
// stream, whose ledger knows of its first term alone.
func TestMove_OfALostStreamGoesOnAboveEveryTermThatWas(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	for range 4 {
		published(t, servers, source, 5)
	}
	before := only(t, state(t, servers, "streams")).Lookup("term").AsInt64()
	wipe(t, state(t, servers, "streams"))
	wipe(t, state(t, servers, "resume_tokens"))
	place := time.Now().Add(-time.Minute).Format(time.RFC3339)
	moved, err := say[command.MoveView](t, configured(servers), "checkpoint", "set", place, "--new", "--why", "test")
	if err != nil || before < 4 || moved.After.Term <= before {
		t.Errorf("set = %+v, %v, want a term above %d", moved, err, before)
	}
}

// TestRepartition_DecidesNothing has partitions follow from a checkpoint that does
// not go with its record, or has none.
func TestRepartition_DecidesNothing(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*testing.T, testserver.Servers){
		"a lost record": func(t *testing.T, servers testserver.Servers) { t.Helper(); wipe(t, state(t, servers, "streams")) },
		"a checkpoint that went back": func(t *testing.T, servers testserver.Servers) {
			t.Helper()
			edit(t, state(t, servers, "streams"), "$set", "confirmed", int64(9))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			published(t, servers, events(t, servers), 10)
			spoil(t, servers)
			two := configured(servers, split(2), patient)
			if err := runCommand(t, two, &syncBuffer{}, "repartition"); err == nil || !strings.Contains(err.Error(), "publisher checkpoint accept") {
				t.Errorf("repartition = %v, want it refused", err)
			}
			if _, err := say[command.MoveView](t, configured(servers), "checkpoint", "accept", "--why", "test"); err != nil {
				t.Fatal(err)
			}
			if err := runCommand(t, two, &syncBuffer{}, "repartition"); err != nil {
				t.Fatal(err)
			}
			if n, err := state(t, servers, "streams").CountDocuments(t.Context(), bson.D{{Key: "settings.MODE", Value: "events"}, {Key: "retired", Value: nil}}); err != nil || n != 2 {
				t.Errorf("%d records know their settings, %v, want 2", n, err)
			}
		})
	}
}

// TestPark_OfASupersededLeaderEndsItsTerm moves the checkpoint under a leader whose
// next change is one that it parks.
func TestPark_OfASupersededLeaderEndsItsTerm(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	c := configured(servers)
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	source.write(t, 10, 2)
	before := p.await(t, "the events to be sent", func(s status.Status) bool { return s.Sent == 10 && s.InFlight == 0 }).Term
	if _, err := say[command.MoveView](t, c, "checkpoint", "set", time.Now().Add(-time.Minute).Format(time.RFC3339), "--force", "--why", "test"); err != nil {
		t.Fatal(err)
	}
	source.unmappable(t)
	p.await(t, "it to be parked in a later term", func(s status.Status) bool { return leading(s) && s.Term > before && s.Sent >= 20 && s.Parked > 0 })
}
