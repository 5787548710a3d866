package scenario

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/releases"
)

var record = flag.Bool("record", false, "write down anew what the last release stores, in testdata/releases")

// total is a projection that a text in place of a number halts, until it is mended.
const total = `projections:
  - name: steps
    collection: steps
    on:
      Step:
        inc: {events: 1, total: %s}
`

// What one release has parked and halted is listed and put back by the other, forward
// and back.
func TestUpgrade_WhatIsSetAsideIsPutBackByEitherRelease(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]bool{"forward": true, "back": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			strict, mended := declaration(t, "data.n"), declaration(t, "int(data.n)")
			u := layOutOld(t, func(c *cluster.Config) { c.Projections, c.Canaries = strict, false })
			u.beginAll(t, old)
			u.setAside(t)
			u.beginAll(t, !old, "PROJECTIONS="+mended)
			u.putBack(t, !old, mended)
		})
	}
}

// What the last release stored is read by today's programs, also where there is no
// program of it any more: testdata/releases has a file for each of its collections.
func TestUpgrade_StoredDocumentsOfTheLastReleaseAreRead(t *testing.T) {
	t.Parallel()
	mended := declaration(t, "int(data.n)")
	c := cluster.New(configure(t, func(c *cluster.Config) {
		c.Projections, c.Canaries = mended, false
		// The source that the checkpoint is of is not there any more.
		c.PublisherEnv = map[string]string{"ON_HISTORY_LOST": "now"}
	}))
	closeAtEnd(t, c)
	if err := c.StartServers(within(t)); err != nil {
		t.Fatal(err)
	}
	u := &upgrade{relay: watched(t, c), old: map[*cluster.Node]bool{}}
	u.restore(t)
	u.beginAll(t, false)
	u.putBack(t, false, mended)
	u.insert(t, 5, "type", 5)
	u.awaitSteps(t, 5, 15)
	if _, status := u.leader(t, 0); status < 2 {
		t.Errorf("term: got %d, want one after that of the release", status)
	}
}

// setAside has an aggregate halted and a change parked, and ends all services.
func (u *upgrade) setAside(t *testing.T) {
	t.Helper()
	u.insert(t, 1, "type", 1)
	u.insert(t, 2, "type", "2") // halts the aggregate
	u.insert(t, 3, "type", 3)
	u.insert(t, 4, "kind", 4) // has no type, as far as the publisher sees
	await(t, "two messages and a change to be parked", func(ctx context.Context) (bool, string) {
		messages, _ := u.witness.ReadModel().Collection("parked_messages").CountDocuments(ctx, bson.D{})
		changes, _ := u.witness.State().Collection("parked_changes").CountDocuments(ctx, bson.D{})
		return messages == 2 && changes == 1, fmt.Sprintf("%d messages, %d changes", messages, changes)
	})
	for _, err := range cluster.Stop(within(t), slices.Concat(u.Publishers, u.Projectors)...) {
		t.Fatal(err)
	}
}

// putBack puts back what setAside has set aside, over a declaration that is mended.
func (u *upgrade) putBack(t *testing.T, old bool, mended string) {
	t.Helper()
	env := []string{"PROJECTIONS=" + mended, "FIELD_TYPE=kind"}
	if list := u.operate(t, u.Projectors[0], old, env, "parked", "list"); !strings.Contains(list, "step") {
		t.Errorf("parked messages: got %s, want those of the aggregate step", list)
	}
	u.operate(t, u.Projectors[0], old, env, "parked", "redrive", "--all")
	u.operate(t, u.Publishers[0], old, env, "parked", "replay", "--all")
	u.awaitSteps(t, 4, 10)
	left, err := u.witness.ReadModel().Collection("halted_aggregates").CountDocuments(within(t), bson.D{})
	if err != nil || left != 0 {
		t.Errorf("halted aggregates: got %d, %v, want none", left, err)
	}
}

// awaitSteps waits until the aggregate has so many events, with that total.
func (u *upgrade) awaitSteps(t *testing.T, events, sum int) {
	t.Helper()
	await(t, fmt.Sprintf("%d events to be applied", events), func(ctx context.Context) (bool, string) {
		var document struct{ Events, Total int }
		err := u.witness.ReadModel().Collection("steps").FindOne(ctx, bson.D{{Key: "_id", Value: "step"}}).Decode(&document)
		return err == nil && document.Events == events && document.Total == sum, fmt.Sprint(document, err)
	})
}

// declaration writes the projection whose total is that expression.
func declaration(t *testing.T, expression string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "steps.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, total, expression), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// insert writes an event of the aggregate step whose type is in that field.
func (u *upgrade) insert(t *testing.T, version int, field string, n any) {
	t.Helper()
	names := u.Names()
	_, err := u.witness.Client.Database(names.SourceDatabase).Collection(names.SourceCollection).InsertOne(within(t), bson.D{
		{Key: "_id", Value: fmt.Sprintf("step/%d", version)},
		{Key: "aggregateId", Value: "step"},
		{Key: "version", Value: version},
		{Key: field, Value: "Step"},
		{Key: "data", Value: bson.D{{Key: "n", Value: n}}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// operate runs a command of the last release, or of today's, in a node's environment.
func (u *upgrade) operate(t *testing.T, n *cluster.Node, old bool, env []string, args ...string) string {
	t.Helper()
	output, err := n.CommandAs(within(t), u.program(n, old), env, args...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// TestRecord_WhatTheLastReleaseStores writes testdata/releases, where -record is given.
func TestRecord_WhatTheLastReleaseStores(t *testing.T) {
	t.Parallel()
	if !*record {
		t.Skip("writes testdata/releases: UPGRADES=1 go test -run TestRecord_ -record")
	}
	strict := declaration(t, "data.n")
	u := layOutOld(t, func(c *cluster.Config) { c.Projections, c.Canaries = strict, false })
	u.beginAll(t, true)
	u.setAside(t)
	for _, database := range []string{u.Names().StateDatabase, u.Names().ReadModelDatabase} {
		collections, err := u.witness.Client.Database(database).ListCollectionNames(within(t), bson.D{{Key: "type", Value: "collection"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, collection := range collections {
			cursor, err := u.witness.Client.Database(database).Collection(collection).Find(within(t), bson.D{})
			if err != nil {
				t.Fatal(err)
			}
			var documents []bson.D
			if err := cursor.All(within(t), &documents); err != nil {
				t.Fatal(err)
			}
			text, err := bson.MarshalExtJSONIndent(bson.D{{Key: "documents", Value: documents}}, true, false, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			file := stored(database, collection)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, append(text, '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// stored is the file of what the last release stores in a collection; names may be
// patterns.
func stored(database, collection string) string {
	return filepath.Join("testdata", "releases", releases.Last().Name, database, collection+".json")
}

// restore writes what testdata/releases has of the last release.
func (u *upgrade) restore(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(stored("*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files of release %s: got %q, %v, want some: UPGRADES=1 go test -run TestRecord_ -record", releases.Last().Name, files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var all struct{ Documents []bson.D }
		if err := bson.UnmarshalExtJSON(text, true, &all); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(all.Documents) == 0 {
			continue
		}
		collection := strings.TrimSuffix(filepath.Base(file), ".json")
		if _, err := u.witness.Client.Database(filepath.Base(filepath.Dir(file))).Collection(collection).InsertMany(within(t), all.Documents); err != nil {
			t.Fatal(err)
		}
	}
}
