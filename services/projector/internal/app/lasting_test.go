package app_test

import (
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/sandboxtest"
)

const oddly = counting + `
- name: odd
  collection: odd
  on:
    Odd:
      inc: {events: 1}
`

// Events that the server refuses for a reason that nobody lists halt their own
// aggregates, though there are more of them than sessions may be held.
func TestLasting_AggregatesThatAloneCannotBeStoredStarveNoOther(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	projections, err := projection.Parse("test.yaml", []byte(oddly))
	if err != nil {
		t.Fatal(err)
	}
	cfg := configured(t, "lasting", database)
	cfg.HaltAfter = 3 * time.Second
	p := start(t, cfg, projections)
	until(t, "it runs", func() bool { return p.Status().State == "running" })
	// A view takes no writes, which the server says with a code of its own.
	if err := db.Collection("odd").Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.CreateView(t.Context(), "odd", "orders", mongo.Pipeline{}); err != nil {
		t.Fatal(err)
	}
	const sick = 20 // of 8 sessions
	for n := range sick {
		send(t, "lasting", event(fmt.Sprintf("sick-%02d", n), 1, "Odd", `{}`), event(fmt.Sprintf("sick-%02d", n), 2, "Happened", `{}`))
	}
	var well int64
	until(t, "those that fail are halted", func() bool {
		well++
		send(t, "lasting", event("well", well, "Happened", `{}`))
		halted, err := db.Collection("halted_aggregates").CountDocuments(t.Context(), bson.D{})
		return err == nil && halted == sick && p.Status().Parked == 2*sick
	})
	until(t, "the other one is whole", func() bool {
		return int64(len(seen(sandboxtest.Documents(t, db, "orders")["well"]))) == min(well, 1000)
	})
	if documents := sandboxtest.Documents(t, db, "orders"); len(documents) != 1 {
		t.Errorf("documents: got %d, want only that of the aggregate that can be stored", len(documents))
	}
}
