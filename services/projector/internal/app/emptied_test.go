package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/projection"
)

// What was applied to a read collection does not come again while the positions stay.
func TestEmptied_AnOperatorIsToldOfACollectionThatWasEmptied(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	projections := load(t, file(t, "projections.yaml", keyedToo))
	cfg := configured(t, "emptied", database)
	p := start(t, cfg, projections)
	send(t, "emptied", event("a", 1, "Happened", `{}`))
	until(t, "it is applied", func() bool { return p.Status().Applied == 1 })
	until(t, "it was looked at", func() bool {
		n, err := db.Collection(projection.Owners).CountDocuments(t.Context(), bson.D{{Key: "_id", Value: "$seen:all"}, {Key: "documents.0", Value: "all"}})
		return err == nil && n == 1
	})
	if !strings.Contains(scraped(t, p), "\nprojector_emptied_collections 0\n") || len(p.Status().Emptied) != 0 {
		t.Errorf("before: got %v, want nothing found", p.Status().Emptied)
	}
	lose(t, db, "all")
	send(t, "emptied", event("a", 2, "Happened", `{}`)) // and begins it anew
	until(t, "it is found", func() bool { return slices.Equal(p.Status().Emptied, []string{"all"}) })
	if !strings.Contains(scraped(t, p), "\nprojector_emptied_collections 1\n") {
		t.Error("the metrics do not say so")
	}
	if text := p.logs.String(); strings.Count(text, "a read collection was emptied or dropped") != 1 || !strings.Contains(text, "An emptied read collection") {
		t.Errorf("the log does not name the way back, once:\n%s", text)
	}
	onTopic(t, "emptied", database, keyedToo)
	if lines, err := runCommand(t, "status", "--json"); err != nil || !strings.Contains(fmt.Sprint(lines[0]["emptied_collections"]), "[all]") || !strings.Contains(fmt.Sprint(lines[0]["warnings"]), "Restore it") {
		t.Errorf("status: got %v and %v, want the collection named, and the way back", lines, err)
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	p = start(t, cfg, projections)
	until(t, "the next one runs", func() bool { return strings.Contains(p.logs.String(), "taking sessions") })
	if emptied := p.Status().Emptied; !slices.Equal(emptied, []string{"all"}) {
		t.Errorf("the next one: got %v, want that it knows from the start", emptied)
	}
	// The command of docs/operations.md.
	if _, err := db.Collection(projection.Owners).DeleteOne(t.Context(), bson.D{{Key: "_id", Value: "$seen:all"}}); err != nil {
		t.Fatal(err)
	}
	until(t, "nothing is reported without the note", func() bool { return len(p.Status().Emptied) == 0 })
}
