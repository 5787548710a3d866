package app_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/app"
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/sandboxtest"
)

// elsewhere starts a projector that must refuse, and end by itself.
func elsewhere(t *testing.T, cfg config.Config, want string) {
	t.Helper()
	elsewhereWith(t, cfg, parse(t), want)
}

func elsewhereWith(t *testing.T, cfg config.Config, projections projection.Projections, want string) {
	t.Helper()
	p, err := app.New(t.Context(), cfg, projections, "test", &logs{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	until(t, "it runs or has ended", func() bool { return len(ended) > 0 || p.Status().State == "running" })
	cancel()
	if err := <-ended; !errors.Is(err, readmodel.ErrElsewhere) || !strings.Contains(err.Error(), want) {
		t.Errorf("a start elsewhere: got %v, want it refused: %s", err, want)
	}
}

// refused runs a command that must fail, and say why.
func refused(t *testing.T, want string, args ...string) {
	t.Helper()
	if lines, err := runCommand(t, args...); err == nil || len(lines) > 0 || !strings.Contains(err.Error(), want) {
		t.Errorf("%v: got %v and %v, want it refused: %s", args, lines, err, want)
	}
}

// ledger is what projector ledger prints.
func ledger(t *testing.T) []map[string]any {
	t.Helper()
	lines, err := runCommand(t, "ledger")
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// One group owns read collections, and one subscription feeds it, until an
// operator says otherwise.
func TestOwner_AnotherGroupOrSubscriptionIsRefusedUntilItIsMoved(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	cfg := configured(t, "owned", database)
	p := start(t, cfg, parse(t))
	onTopic(t, "owned", database, counting)
	send(t, "owned", event("a", 1, "Happened", `{}`), event("b", 1, "Doubled", `{"n":"x"}`))
	until(t, "one is applied and one parked", func() bool { return p.Status().Applied == 1 && p.Status().Parked == 1 })
	t.Setenv("SERVICEBUS_TOPIC", "owned-too")
	refused(t, "1 projectors of the group \"\" live", "move")
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	before := projectorState(t, db)

	group, subscription, moved := cfg, cfg, cfg
	group.Group, subscription.Subscription, moved.Topic = "other", "another", "owned-too"
	elsewhere(t, group, `collection "orders" is of the group ""`)
	elsewhere(t, subscription, `is fed by subscription "projector" of topic "owned"`)
	elsewhere(t, moved, `is fed by subscription "projector" of topic "owned"`)
	space := cfg
	space.ServiceBusConnectionString, space.ServiceBusNamespace = "", "another.example"
	elsewhere(t, space, `in "another.example"`)
	if after := projectorState(t, db); after != before {
		t.Errorf("after refused starts there are %d documents of projectors, want %d", after, before)
	}
	refused(t, "run projector move", "setup")
	if lines, err := runCommand(t, "move", "--dry-run"); err != nil || len(lines) != 1 || lines[0]["moved"] != false {
		t.Errorf("a dry move: got %v and %v, want it to say what it would do", lines, err)
	}
	elsewhere(t, moved, "is fed by")
	if lines, err := runCommand(t, "move"); err != nil || len(lines) != 1 || lines[0]["moved"] != true {
		t.Fatalf("move: got %v and %v, want it done", lines, err)
	}
	elsewhere(t, cfg, `is fed by subscription "projector" of topic "owned-too"`)
	next := start(t, moved, parse(t))
	send(t, "owned-too", event("a", 2, "Happened", `{}`))
	until(t, "the group goes on with the other topic", func() bool { return next.Status().Applied == 1 })
	if err := next.stop(); err != nil {
		t.Fatal(err)
	}
	// The old record and the old environment do not let a command in any more.
	t.Setenv("SERVICEBUS_TOPIC", "owned")
	refused(t, `is fed by subscription "projector" of topic "owned-too"`, "parked", "discard", "b", "--all")
	refused(t, `is fed by subscription "projector" of topic "owned-too"`, "halts", "resume")
	// What was parked before the move is the group's own still.
	t.Setenv("SERVICEBUS_TOPIC", "owned-too")
	refused(t, "no such message is parked", "parked", "discard", "nobody", "--all")
	t.Setenv("READMODEL_GROUP", "other")
	refused(t, "1 halted aggregates and 1 parked messages", "move")
	t.Setenv("READMODEL_GROUP", "")
	if lines, err := runCommand(t, "parked", "discard", "b", "--all"); err != nil || len(lines) != 1 {
		t.Errorf("discard of what came before the move: got %v and %v, want it gone", lines, err)
	}
	if lines, err := runCommand(t, "parked", "redrive", "b"); err != nil || len(lines) != 1 || lines[0]["lifted"] != true {
		t.Errorf("redrive: got %v and %v, want the halt lifted", lines, err)
	}
	if lines := ledger(t); len(lines) != 2 || lines[0]["command"] != "move" || lines[1]["command"] != "parked discard" {
		t.Errorf("the ledger: got %v, want the move and the discard", lines)
	}
	t.Setenv("READMODEL_GROUP", "other")
	if _, err := runCommand(t, "move"); err != nil {
		t.Fatal(err)
	}
	group.Topic = "owned-too"
	elsewhere(t, moved, `collection "orders" is of the group "other"`)
	last := start(t, group, parse(t))
	send(t, "owned-too", event("a", 3, "Happened", `{}`))
	until(t, "the other group goes on", func() bool { return last.Status().Applied == 1 })
	sees(t, db, "a", 1, 2, 3)
}

// projectorState counts what projectors keep in a database about themselves.
func projectorState(t *testing.T, db *mongo.Database) (n int64) {
	t.Helper()
	for _, name := range []string{projection.Owners, projection.Processes, projection.OfGroup(projection.Processes, "other")} {
		some, err := db.Collection(name).CountDocuments(t.Context(), bson.D{})
		if err != nil {
			t.Fatal(err)
		}
		n += some
	}
	return n
}

// A projector that stood still while its collections, or its subscription, were
// moved must not go on.
func TestOwner_AProjectorWhoseCollectionsAreMovedStops(t *testing.T) {
	t.Parallel()
	for topic, moved := range map[string]bson.D{
		"place":     {{Key: "_id", Value: "orders"}},
		"place-too": {{Key: "feed.topic", Value: "place-too"}},
	} {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			client, database := servers.Mongo(t, nil)
			p, err := app.New(t.Context(), configured(t, topic, database), parse(t), "test", &logs{})
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- p.Run(t.Context()) }()
			until(t, "it runs", func() bool { return p.Status().State == "running" })
			result, err := client.Database(database).Collection(projection.Owners).UpdateOne(t.Context(), moved,
				bson.D{{Key: "$set", Value: bson.D{{Key: "group", Value: "other"}}}})
			if err != nil || result.MatchedCount != 1 {
				t.Fatalf("move it: got %+v and %v, want it moved", result, err)
			}
			until(t, "it has ended", func() bool { return len(ended) > 0 })
			if err := <-ended; !errors.Is(err, readmodel.ErrElsewhere) {
				t.Errorf("it has ended with %v, want that it is elsewhere", err)
			}
		})
	}
}

// What another subscription has parked is neither applied nor discarded.
func TestOwner_WhatAnotherSubscriptionHasParkedIsLeftAlone(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	parked := client.Database(database).Collection(projection.ParkedMessages)
	p := start(t, configured(t, "strange", database), parse(t))
	onTopic(t, "strange", database, counting)
	send(t, "strange", event("a", 1, "Doubled", `{"n":"x"}`))
	until(t, "it is parked", func() bool { return p.Status().Parked == 1 })
	for field, value := range map[string]string{"topic": "strange", "subscription": "projector"} {
		if _, err := parked.UpdateMany(t.Context(), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: field, Value: "elsewhere"}}}}); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"redrive", "a"}, {"redrive", "--all"}, {"redrive", "a", "--dry-run"}} {
			lines, err := runCommand(t, append([]string{"parked"}, args...)...)
			if err == nil || len(lines) != 1 || !strings.Contains(lines[0]["reason"].(string), "which does not feed the group") {
				t.Errorf("%v with another %s: got %v and %v, want it to stop", args, field, lines, err)
			}
		}
		refused(t, "which does not feed the group", "parked", "discard", "a", "--all")
		refused(t, "which does not feed the group", "parked", "discard", "a", "a-1", "--dry-run")
		if lines, err := runCommand(t, "parked", "list"); err != nil || len(lines) != 1 || lines[0]["foreign"] == nil {
			t.Errorf("list with another %s: got %v and %v, want it named", field, lines, err)
		}
		if _, err := parked.UpdateMany(t.Context(), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: field, Value: value}}}}); err != nil {
			t.Fatal(err)
		}
	}
	// An older release noted no topic.
	if _, err := parked.UpdateMany(t.Context(), bson.D{}, bson.D{{Key: "$unset", Value: bson.D{{Key: "topic", Value: ""}}}}); err != nil {
		t.Fatal(err)
	}
	if lines, err := runCommand(t, "parked", "discard", "a", "--all"); err != nil || len(lines) != 1 {
		t.Errorf("discard: got %v and %v, want it gone", lines, err)
	}
}

// A dead letter in the subscription that a version was built from is missing in it,
// also once another one feeds it.
func TestSwitch_LooksAtTheSubscriptionsThatFedTheVersion(t *testing.T) {
	v := newVersions(t)
	v.second(t, "fed", "projector", 0)
	send(t, "fed", happened("a", 1, 1)...)
	deadLetter(t, "fed", "a")
	v.on(t, "fed-too", "projector")
	refusedFor(t, "orders", `1 messages of 1 aggregates are dead-lettered in subscription "projector" of topic "fed"`)
	v.on(t, "fed", "projector")
	if _, err := runCommand(t, "dlq", "discard", "--all"); err != nil {
		t.Fatal(err)
	}
	v.on(t, "fed-too", "projector")
	switchTo(t, "orders", "2")
}

// While a projector lived that notes no versions, more were applied than are noted.
func TestGaps_AVersionIsDoubtedWhereAProjectorLivedThatNotesNone(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	for i, onGap := range []string{"wait", "report", "wait"} {
		cfg := configured(t, "doubt", database)
		cfg.OnGap, cfg.GapWait = onGap, 0
		p := start(t, cfg, parse(t))
		if i == 1 {
			send(t, "doubt", happened("a", 2, 3)...)
			sees(t, db, "a", 1, 2, 3)
		} else {
			send(t, "doubt", happened("a", int64(3*i)/2+1, int64(3*i)/2+1)...)
		}
		until(t, "all is applied or halted", func() bool { s := p.Status(); return s.Applied+s.Parked > 0 && s.OldestUnapplied == nil })
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
	}
	sees(t, db, "a", 1, 2, 3, 4)
}

// Where readers see no version, the one that they saw is not known to be none.
func TestSwitch_IsRefusedWhereReadersSeeNoneOfTheVersionsThatThereAre(t *testing.T) {
	v := newVersions(t)
	v.second(t, "versions", "projector", 1)
	if err := v.client.Database(v.database).Collection("orders").Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	refusedFor(t, "orders", "readers see no version, and version 1 has documents")
	v.use(1)
	switchTo(t, "orders", "1")
}

// That no more dead letters come is not that all are gone.
func TestDeadDiscard_SaysWhatIsLeft(t *testing.T) {
	_, database := servers.Mongo(t, nil)
	p := start(t, configured(t, "left", database), parse(t))
	onTopic(t, "left", database, counting)
	for _, id := range []string{"one", "two"} {
		sandboxtest.Send(t, servers, "left", contract.Message{ID: id, SessionID: id, Body: []byte("hello")})
	}
	until(t, "both are dead-lettered", func() bool { return p.Status().DeadLettered == 2 })
	receiver, err := servers.Client(t).NewReceiverForSubscription("left", "projector", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = receiver.Close(t.Context()) }()
	if locked, err := receiver.ReceiveMessages(t.Context(), 1, nil); err != nil || len(locked) != 1 {
		t.Fatalf("lock one: got %d and %v", len(locked), err)
	}
	if lines, err := runCommand(t, "dlq", "discard", "--all"); err == nil || len(lines) != 1 || !strings.Contains(err.Error(), "1 of 2") {
		t.Errorf("with one that is locked: got %v and %v, want it said", lines, err)
	}
	if lines := ledger(t); len(lines) != 1 || lines[0]["count"] != 1.0 || lines[0]["error"] == nil {
		t.Errorf("the ledger: got %v, want the one that is gone, and the failure", lines)
	}
}
