package app_test

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/app"
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/sandboxtest"
)

// running runs a projector that ends by itself.
func running(t *testing.T, cfg config.Config, projections projection.Projections) (p *projector, ended <-chan error) {
	t.Helper()
	p = &projector{logs: &logs{}}
	var err error
	if p.App, err = app.New(t.Context(), cfg, projections, "test", p.logs); err != nil {
		t.Fatal(err)
	}
	end := make(chan error, 1)
	go func() { end <- p.Run(t.Context()) }()
	return p, end
}

// noteShown is the command of docs/operations.md.
func noteShown(t *testing.T, db *mongo.Database, name, collection string) {
	t.Helper()
	if _, err := db.Collection(collection).Aggregate(t.Context(), bson.A{
		bson.D{{Key: "$match", Value: bson.D{{Key: "_relay.aggregateId", Value: bson.D{{Key: "$exists", Value: true}}}}}},
		bson.D{{Key: "$sort", Value: bson.D{{Key: "_relay.sequence", Value: 1}}}},
		bson.D{{Key: "$group", Value: bson.D{
			{Key: "_id", Value: "$_relay.aggregateId"},
			{Key: "sequence", Value: bson.D{{Key: "$last", Value: "$_relay.sequence"}}},
			{Key: "eventId", Value: bson.D{{Key: "$last", Value: "$_relay.eventId"}}},
		}}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "_id", Value: bson.D{{Key: "projection", Value: name}, {Key: "aggregateId", Value: "$_id"}}}}}},
		bson.D{{Key: "$merge", Value: bson.D{
			{Key: "into", Value: projection.Positions},
			{Key: "whenMatched", Value: bson.A{bson.D{{Key: "$replaceWith", Value: bson.D{{Key: "$cond", Value: bson.A{
				bson.D{{Key: "$lt", Value: bson.A{"$sequence", "$$new.sequence"}}}, "$$new", "$$ROOT",
			}}}}}}},
		}}},
	}); err != nil {
		t.Fatal(err)
	}
}

// Without its position a message that comes again would be counted again.
func TestPositions_AProjectorThatHasLostThemStopsAndCountsNothingAgain(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	cfg := configured(t, "positions", database)
	projections := load(t, file(t, "projections.yaml", keyedToo))
	p, ended := running(t, cfg, projections)
	first, second := event("a", 1, "Happened", `{}`), event("a", 2, "Happened", `{}`)
	send(t, "positions", first, second)
	until(t, "both are applied", func() bool { return p.Status().Applied == 2 })
	total := func() int64 { return sandboxtest.Documents(t, db, "all")["all"].Lookup("events").AsInt64() }

	if err := db.Collection(projection.Positions).Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := first
	again.ID = "a-1-again" // so that the broker does not drop the repeat
	send(t, "positions", again)
	until(t, "it has ended", func() bool { return len(ended) > 0 })
	if err := <-ended; !errors.Is(err, readmodel.ErrPositionsLost) {
		t.Errorf("it has ended with %v, want that positions are lost", err)
	}
	p, ended = running(t, cfg, projections)
	until(t, "it has not started", func() bool { return len(ended) > 0 })
	if err := <-ended; !errors.Is(err, readmodel.ErrPositionsLost) || strings.Contains(p.logs.String(), "taking sessions") {
		t.Errorf("a start ended with %v, want that positions are lost, and that it has taken no session", err)
	}
	if n := total(); n != 2 {
		t.Errorf("%d events are counted, want two", n)
	}

	noteShown(t, db, "all", "all")
	noted := start(t, cfg, projections)
	until(t, "the repeat is completed", func() bool { return noted.Status().Completed == 1 })
	send(t, "positions", event("a", 3, "Happened", `{}`))
	until(t, "the next is applied", func() bool { return noted.Status().Applied == 1 })
	if n := total(); n != 3 {
		t.Errorf("%d events are counted, want three", n)
	}
}

// A document of somebody else's stops no projector: it is named, once.
func TestPositions_AStrayDocumentIsNamedAndStopsNobody(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	cfg := configured(t, "stray", database)
	projections := load(t, file(t, "projections.yaml", keyedToo))
	first := start(t, cfg, projections)
	send(t, "stray", event("a", 1, "Happened", `{}`))
	until(t, "it is applied", func() bool { return first.Status().Applied == 1 })
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	relay := bson.D{{Key: "sequence", Value: "00000000000000000009"}, {Key: "aggregateId", Value: "other"}}
	if _, err := db.Collection("all").InsertOne(t.Context(), bson.D{{Key: "_id", Value: "copied"}, {Key: "_relay", Value: relay}}); err != nil {
		t.Fatal(err)
	}
	p := start(t, cfg, projections)
	send(t, "stray", event("a", 2, "Happened", `{}`))
	until(t, "the next is applied", func() bool { return p.Status().Applied == 1 })
	if text := p.logs.String(); strings.Count(text, "shows an event that no position tells of") != 1 || !strings.Contains(text, "copied") {
		t.Errorf("the log does not name the document:\n%s", text)
	}
}
