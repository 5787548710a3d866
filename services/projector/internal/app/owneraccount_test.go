package app_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/projection"
)

// Positions go by the projection's name, in all groups: another of that name, with
// documents elsewhere, would take each event for a repeat.
func TestOwner_PositionsAreOfOneProjectionsDocuments(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	owners := client.Database(database).Collection(projection.Owners)
	const keyed = "projections: [{name: all, collection: all_one, key: '\"all\"', on: {Happened: {inc: {events: 1}}}}]"
	elsewhereToo := strings.ReplaceAll(keyed, "all_one", "all_two")
	claim := bson.D{{Key: "_id", Value: "$account:all"}}
	claimed := func() bool { return owners.FindOne(t.Context(), claim).Err() == nil }
	cfg := configured(t, "accounts", database)
	other := configured(t, "accounts-too", database)
	other.Group = "v2"
	p := start(t, cfg, load(t, file(t, "projections.yaml", keyed)))
	until(t, "it has the place", func() bool { return p.Status().State == "running" })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	two := load(t, file(t, "projections.yaml", elsewhereToo))
	elsewhereWith(t, other, two, `those of documents in ["all_one"] of the group "", and here it writes to ["all_two"]`)
	elsewhereWith(t, cfg, two, "give the projection another name or version")

	// Of a release without claims there is none.
	if _, err := owners.DeleteOne(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	p = start(t, cfg, load(t, file(t, "projections.yaml", keyed)))
	until(t, "it has the place, and claims the positions", func() bool { return p.Status().State == "running" && claimed() })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}

	onTopic(t, "accounts-too", database, elsewhereToo)
	t.Setenv("READMODEL_GROUP", "v2")
	refused(t, "give the projection another name or version", "move")
	onTopic(t, "accounts-too", database, keyed)
	one := load(t, file(t, "projections.yaml", keyed))
	elsewhereWith(t, other, one, `the positions of projection "all" are of the group ""`)
	if lines, err := runCommand(t, "move"); err != nil || len(lines) != 1 || lines[0]["moved"] != true {
		t.Fatalf("move: got %v and %v, want the positions moved with their collection", lines, err)
	}
	p = start(t, other, one)
	until(t, "the other group has the place", func() bool { return p.Status().State == "running" })
}

// Without a key, too: what one of them has passed by would count as dealt with by the other, also
// when readers are to be switched to a version, and would go when the first one drops its version.
func TestOwner_PositionsOfAVersionAreOneGroups(t *testing.T) {
	_, database := servers.Mongo(t, nil)
	cfg := configured(t, "accounts", database)
	other := configured(t, "accounts-too", database)
	other.Group = "b"
	const versioned = "projections: [{name: orders, version: 1, collection: orders, on: {Happened: {inc: {events: 1}}}}]"
	elsewhereToo := strings.ReplaceAll(versioned, "collection: orders", "collection: others")
	p := start(t, cfg, load(t, file(t, "projections.yaml", versioned)))
	until(t, "it has the place", func() bool { return p.Status().State == "running" })
	const theirs = `the positions of projection "orders_v1" are those of documents in ["orders_v1"] of the group "", and here it writes to ["others_v1"]`
	elsewhereWith(t, other, load(t, file(t, "projections.yaml", elsewhereToo)), theirs)
	onTopic(t, "accounts-too", database, elsewhereToo)
	t.Setenv("READMODEL_GROUP", "b")
	for _, command := range []string{"setup", "move"} {
		refused(t, "give the projection another name or version", command)
	}
	q := start(t, other, load(t, file(t, "projections.yaml", strings.ReplaceAll(elsewhereToo, "name: orders", "name: others"))))
	until(t, "one of another name has its place", func() bool { return q.Status().State == "running" })
}
