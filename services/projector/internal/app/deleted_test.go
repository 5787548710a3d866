package app_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/sandboxtest"
)

// visible counts what readers of a collection or view see of an _id.
func visible(t *testing.T, db *mongo.Database, name, id string) int64 {
	t.Helper()
	n, err := db.Collection(name).CountDocuments(t.Context(), bson.D{{Key: "_id", Value: id}})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestView_ShowsNothingThatIsDeletedAndKeepsItsPosition(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	p := start(t, configured(t, "deleted", database), projection.Projections{projection.Latest{Collection: "latest"}})
	placed, deleted := event("a", 1, "Happened", `{"n":1}`), event("a", 2, "Happened", "")
	deleted.Operation, deleted.ContentType, deleted.Data = contract.Delete, "", nil
	send(t, "deleted", placed, event("b", 1, "Happened", `{}`))
	until(t, "both are visible", func() bool { return visible(t, db, "latest_current", "a")+visible(t, db, "latest_current", "b") == 2 })
	send(t, "deleted", deleted)
	until(t, "the deleted one is invisible", func() bool { return visible(t, db, "latest_current", "a") == 0 })
	placed.ID = "a-1-again" // so that the broker does not drop the repeat
	again, err := contract.Encode(placed, contract.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.Send(t, servers, "deleted", again)
	until(t, "the repeat is completed", func() bool { return p.Status().Completed == 4 })
	if got := visible(t, db, "latest_current", "a"); got != 0 {
		t.Errorf("after a late repeat readers see %d documents, want none", got)
	}
	if got := visible(t, db, "latest", "a"); got != 1 {
		t.Errorf("%d documents keep the position, want 1", got)
	}
}

// The view of a versioned projection hides what is deleted, also one that an
// older release has made, once projector setup was run.
func TestView_OfAVersionShowsNothingThatIsDeleted(t *testing.T) {
	v := newVersions(t)
	db := v.client.Database(v.database)
	for _, name := range []string{"orders", "totals"} {
		if err := db.CreateView(t.Context(), name, name+"_v1", bson.A{}); err != nil {
			t.Fatal(err)
		}
	}
	v.use(1)
	removal := projection.Write{Projection: "orders_v1", Collection: "orders_v1", ID: "a", Event: readmodeltest.Event("a", 2), Delete: true}
	keyed := projection.Write{Projection: "totals_v1", Collection: "totals_v1", ID: "a", Keyed: true, Event: readmodeltest.Event("a", 2), Delete: true}
	if _, err := v.old.Writes.Write(t.Context(), []projection.Write{removal, keyed}); err != nil {
		t.Fatal(err)
	}
	if lines, err := runCommand(t, "setup"); err != nil || len(lines) != 1 || lines[0]["views_not_checked"] != nil {
		t.Fatalf("setup: got %v and %v", lines, err)
	}
	for _, name := range []string{"orders", "totals"} {
		if got := visible(t, db, name, "a"); got != 0 {
			t.Errorf("%s: readers see %d deleted documents, want none", name, got)
		}
		switchTo(t, name, "1")
		if got := visible(t, db, name, "a"); got != 0 {
			t.Errorf("%s after a switch: readers see %d deleted documents, want none", name, got)
		}
	}
}
