package app_test

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/sandboxtest"
)

// A collection refuses an event for what it says. The other, which comes first,
// has no more than it.
func TestSeveralCollections_ARefusedEventIsStoredInNone(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	const source = `
projections:
- name: orders
  collection: orders
  on:
    Happened:
      push: {seen: {value: event.version, last: 1000}}
- name: strict
  collection: strict
  on:
    Happened:
      push: {seen: {value: event.version, last: 1000}}
      set: {last: event.version}
`
	projections, err := projection.Parse("test.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	validator := bson.D{{Key: "last", Value: bson.D{{Key: "$ne", Value: 3}}}}
	if err := db.CreateCollection(t.Context(), "strict", options.CreateCollection().SetValidator(validator)); err != nil {
		t.Fatal(err)
	}
	send(t, "several", happened("a", 1, 6)...)
	cfg := configured(t, "several", database)
	cfg.BatchSize = 1 // coalesced with what follows it, the third would not be seen
	p := start(t, cfg, projections)
	until(t, "the aggregate is halted", func() bool { return p.Status().Parked == 4 })
	for _, collection := range []string{"orders", "strict"} {
		documents := sandboxtest.Documents(t, db, collection)
		if got := seen(documents["a"]); !slices.Equal(got, []int64{1, 2}) {
			t.Errorf("%s: seen %v, want 1 and 2", collection, got)
		}
	}
}
