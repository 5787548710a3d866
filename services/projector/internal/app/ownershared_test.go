package app_test

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
)

// What one group takes from a subscription another never sees.
func TestOwner_ASubscriptionFeedsOneGroupUntilItIsMoved(t *testing.T) {
	_, database := servers.Mongo(t, nil)
	first := configured(t, "shared", database)
	second := first
	second.Group, second.Subscription = "second", "Projector" // the broker's names have no case
	next := strings.ReplaceAll(counting, "orders", "orders_next")
	projections, err := projection.Parse("next.yaml", []byte(next))
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, first, parse(t))
	until(t, "the first group has the place", func() bool { return p.Status().State == "running" })
	onTopic(t, "shared", database, next)
	t.Setenv("READMODEL_GROUP", "second")
	const (
		whose  = `feeds the group "", since TestOwner_ASubscriptionFeedsOneGroupUntilItIsMoved started`
		advice = `create a subscription of its own for the group "second"`
	)
	elsewhereWith(t, second, projections, whose)
	second.Subscription = "projector"
	elsewhereWith(t, second, projections, advice)
	refused(t, advice, "setup")
	found, _, _ := examined(t, servers)
	wantAll(t, found, "is not this environment's", whose)
	refused(t, `1 projectors of the group "" live`, "move")
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}

	// Those who had it are gone for good.
	if lines, err := runCommand(t, "move", "--dry-run"); err != nil || len(lines) != 1 || lines[0]["taken_from"] != "" || lines[0]["moved"] != false {
		t.Errorf("a dry move: got %v and %v, want whose the subscription is", lines, err)
	}
	if lines, err := runCommand(t, "move"); err != nil || len(lines) != 1 || lines[0]["moved"] != true {
		t.Fatalf("move: got %v and %v, want it done", lines, err)
	}
	elsewhere(t, first, `feeds the group "second"`)
	p = start(t, second, projections)
	send(t, "shared", event("a", 1, "Happened", `{}`))
	until(t, "the other group has what comes", func() bool { return p.Status().Applied > 0 })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}

	// A group that moves on blocks nobody.
	t.Setenv("SERVICEBUS_TOPIC", "shared-too")
	if lines, err := runCommand(t, "move"); err != nil || len(lines) != 1 || lines[0]["released"] == nil {
		t.Fatalf("move: got %v and %v, want the subscription released", lines, err)
	}
	p = start(t, first, parse(t))
	send(t, "shared", event("a", 2, "Happened", `{}`))
	until(t, "the first group has what comes", func() bool { return p.Status().Applied > 0 })
}

// Whoever runs notes again what is lost of what says so, and no newcomer takes
// its place meanwhile.
func TestOwner_WhatIsLostIsNotedAgain(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	cfg := configured(t, "lost", database)
	wrong := cfg
	wrong.Topic = "elsewhere"
	p := start(t, cfg, parse(t))
	until(t, "it has the place", func() bool { return p.Status().State == "running" })
	onTopic(t, "lost", database, counting)
	noted := func(collection string, what bson.D) func() bool {
		return func() bool {
			n, err := db.Collection(collection).CountDocuments(t.Context(), what)
			return err == nil && n > 0
		}
	}
	feed := noted(projection.Processes, bson.D{{Key: "_id", Value: "feed"}, {Key: "topic", Value: "lost"}})
	deployment := noted(projection.Processes, bson.D{{Key: "startedBy", Value: cfg.InstanceID}})
	for _, lost := range []func() error{
		func() error { return db.Collection(projection.Processes).Drop(t.Context()) },
		func() error { // an older feed is restored
			_, err := db.Collection(projection.Processes).UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "feed"}}, bson.D{{Key: "$set", Value: bson.D{
				{Key: "topic", Value: "elsewhere"}, {Key: "since", Value: time.Now().Add(-time.Hour)},
			}}})
			return err
		},
	} {
		if err := lost(); err != nil {
			t.Fatal(err)
		}
		elsewhere(t, wrong, `is fed by subscription "projector" of topic "lost"`)
		until(t, "it is noted again", func() bool { return feed() && deployment() })
		refused(t, "no such message is parked", "parked", "discard", "nobody", "--all")
	}
	if err := db.Collection(projection.Owners).Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "whose it is is noted again", noted(projection.Owners, bson.D{{Key: "_id", Value: "orders"}}))
	until(t, "what it feeds is noted again", noted(projection.Owners, bson.D{{Key: "feed.topic", Value: "lost"}}))
	if p.Status().State != "running" {
		t.Errorf("the projector is %s, want it to run", p.Status().State)
	}
	store := readmodel.New(client, readmodel.Config{Database: database, Feed: readmodel.Feed{Topic: "lost", Subscription: "projector"}})
	if feeds, err := store.Feeds(t.Context()); err != nil || len(feeds) != 2 || feeds[0].Topic != "lost" || feeds[1].Topic != "elsewhere" {
		t.Errorf("the feeds: got %v and %v, want the restored one before its own", feeds, err)
	}
}
