package readmodel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
)

// own is the nth event of an aggregate with a document of its own.
func own(aggregate string, n int64) projection.Write {
	w := counted(aggregate, aggregate, n)
	w.Projection, w.Collection, w.Keyed = "own", "own", false
	return w
}

// keeping is a store whose tombstones are kept for a time.
func keeping(t *testing.T, keep time.Duration) (*readmodel.Store, *mongo.Database) {
	t.Helper()
	client, database := servers.Mongo(t, nil)
	return another(client, database, keep), client.Database(database)
}

func another(client *mongo.Client, database string, keep time.Duration) *readmodel.Store {
	return readmodel.New(client, readmodel.Config{Database: database, Keep: keep, Projections: []projection.Part{
		{Name: "own", Collections: []string{"own"}},
		{Name: "totals", Collections: []string{"totals"}, Keyed: true},
	}})
}

// found wants a look to find emptied collections, in their order, and the doctor to say the same.
func found(t *testing.T, s *readmodel.Store, when string, want ...string) {
	t.Helper()
	emptied, err := s.NoteEmptied(t.Context())
	var names []string
	for _, e := range emptied {
		names = append(names, e.Collection)
	}
	if err != nil || fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("%s: a look found %v and %v, want %v", when, names, err, want)
	}
	e, err := s.Examine(t.Context(), []string{"own", "totals"}, nil, time.Hour)
	if err != nil || len(e.Facts.Emptied) != len(want) {
		t.Errorf("%s: the doctor found %q and %v, want %v", when, e.Facts.Emptied, err, want)
	}
	for i, text := range e.Facts.Emptied[:min(len(want), len(e.Facts.Emptied))] {
		if !strings.Contains(text, fmt.Sprintf("%q", want[i])) || !strings.Contains(text, "Restore it") {
			t.Errorf("%s: the doctor says %s, want %q named, and the way back", when, text, want[i])
		}
	}
}

// aged has what was noted of read collections be of earlier.
func aged(t *testing.T, db *mongo.Database, by time.Duration) {
	t.Helper()
	if _, err := db.Collection(projection.Owners).UpdateMany(t.Context(), bson.D{{Key: "at", Value: bson.D{{Key: "$exists", Value: true}}}},
		mongo.Pipeline{{{Key: "$set", Value: bson.D{{Key: "at", Value: bson.D{{Key: "$subtract", Value: bson.A{"$at", by.Milliseconds()}}}}}}}}); err != nil {
		t.Fatal(err)
	}
}

func empty(ctx context.Context, c *mongo.Collection) error {
	return second(c.DeleteMany(ctx, bson.D{}))
}

func TestEmptied_ACollectionThatIsEmptiedOrDroppedIsFound(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(context.Context, *mongo.Collection) error{
		"dropped": func(ctx context.Context, c *mongo.Collection) error { return c.Drop(ctx) },
		"emptied": empty,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, db := keeping(t, 24*time.Hour)
			found(t, s, "at the start")
			write(t, s, own("a", 1), own("b", 1))
			write(t, s, counted("one", "a", 1), counted("two", "b", 1), counted("three", "c", 1))
			found(t, s, "with documents")
			found(t, s, "again")
			if err := lose(t.Context(), db.Collection("totals")); err != nil {
				t.Fatal(err)
			}
			// What comes meanwhile hides nothing.
			write(t, s, counted("new", "d", 1))
			found(t, another(db.Client(), db.Name(), 24*time.Hour), "found by another process", "totals")
			if err := lose(t.Context(), db.Collection("own")); err != nil {
				t.Fatal(err)
			}
			found(t, s, "of an aggregate's own", "own", "totals")
			aged(t, db, 48*time.Hour)
			found(t, s, "later", "own", "totals")
			if err := second(db.Collection(projection.Owners).DeleteMany(t.Context(), bson.D{{Key: "_id", Value: bson.D{{Key: "$regex", Value: `^\$seen:`}}}})); err != nil {
				t.Fatal(err)
			}
			found(t, s, "after the notes were removed")
			found(t, s, "for good")
		})
	}
}

// A document that is written again at once looks as if it had stayed.
func TestEmptied_ADocumentThatIsBegunAnewWasNotThere(t *testing.T) {
	t.Parallel()
	s, db := keeping(t, 24*time.Hour)
	write(t, s, counted("all", "a", 1))
	write(t, s, own("a", 1))
	found(t, s, "with documents")
	for _, collection := range []string{"totals", "own"} {
		if err := empty(t.Context(), db.Collection(collection)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, s, counted("all", "a", 2))
	write(t, s, own("a", 2))
	// Another process, which has inserted nothing, sees them there.
	found(t, another(db.Client(), db.Name(), 24*time.Hour), "to another process")
	emptied, err := s.NoteEmptied(t.Context())
	if err != nil || len(emptied) != 2 {
		t.Errorf("to the one that has inserted them: got %v and %v, want both", emptied, err)
	}
	found(t, another(db.Client(), db.Name(), 24*time.Hour), "once it is noted", "own", "totals")
}

func TestEmptied_WhatEventsHaveDeletedIsNotMissed(t *testing.T) {
	t.Parallel()
	const keep = 24 * time.Hour
	s, db := keeping(t, keep)
	gone, none, passed := own("a", 2), counted("all", "a", 2), counted("", "b", 1)
	for _, w := range []*projection.Write{&gone, &none} {
		w.Update, w.Delete = nil, true
	}
	passed.Collection, passed.Update, passed.Passed = "", nil, true
	write(t, s, passed)
	found(t, s, "with a position of an event that was passed over, and no document")
	write(t, s, own("a", 1))
	write(t, s, counted("all", "a", 1))
	found(t, s, "with documents")
	write(t, s, gone)
	write(t, s, none)
	found(t, s, "with tombstones")
	aged(t, db, keep)
	late := another(db.Client(), db.Name(), keep)
	found(t, late, "with tombstones later")
	for _, collection := range []string{"totals", "own"} {
		if err := empty(t.Context(), db.Collection(collection)); err != nil {
			t.Fatal(err)
		}
	}
	found(t, late, "after the tombstones have expired")
}

// While nobody looks events may delete what was there, and the tombstones expire.
func TestEmptied_WhatMayHaveExpiredMeanwhileIsNotMissed(t *testing.T) {
	t.Parallel()
	const keep = 24 * time.Hour
	s, db := keeping(t, keep)
	write(t, s, own("a", 1))
	found(t, s, "with a document")
	aged(t, db, keep)
	if err := empty(t.Context(), db.Collection("own")); err != nil {
		t.Fatal(err)
	}
	late := another(db.Client(), db.Name(), keep)
	found(t, late, "at the start")
	found(t, late, "again")
}

// What a look takes for later looks was there before the collection was emptied, even
// where that happens while it looks.
func TestEmptied_ACollectionThatIsEmptiedDuringALookIsFound(t *testing.T) {
	t.Parallel()
	var between func()
	client, database := servers.Mongo(t, &event.CommandMonitor{Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) {
		from, _ := e.Reply.Lookup("cursor", "ns").StringValueOK()
		if e.CommandName == "find" && strings.HasSuffix(from, ".own") && between != nil {
			once := between
			between = nil
			once()
		}
	}})
	const keep = 24 * time.Hour
	s, db := another(client, database, keep), client.Database(database)
	write(t, s, own("a", 1), own("b", 1))
	found(t, s, "with documents")
	aged(t, db, 2*time.Minute)
	late := another(client, database, keep)
	between = func() {
		if err := empty(t.Context(), db.Collection("own")); err != nil {
			t.Error(err)
		}
		write(t, late, own("c", 1), own("d", 1))
	}
	if emptied, err := late.NoteEmptied(t.Context()); err != nil || len(emptied) != 0 {
		t.Errorf("got %v and %v, want nothing found yet", emptied, err)
	}
	found(t, late, "by the next look", "own")
}

// A look may see a document before the process knows that it was the one to insert it.
func TestEmptied_ADocumentThatIsSeenAsItIsInsertedIsNotMissed(t *testing.T) {
	t.Parallel()
	var between func()
	client, database := servers.Mongo(t, &event.CommandMonitor{Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) {
		if e.CommandName == "update" && between != nil {
			once := between
			between = nil
			once()
		}
	}})
	s := another(client, database, 24*time.Hour)
	between = func() { found(t, s, "while they are inserted") }
	write(t, s, own("a", 1), own("b", 1))
	found(t, s, "later")
}

// Some documents may be removed by hand, and so may a read model with its positions.
func TestEmptied_WhatIsRemovedOnPurposeIsNotMissed(t *testing.T) {
	t.Parallel()
	s, db := keeping(t, 24*time.Hour)
	write(t, s, own("a", 1), own("b", 1), own("c", 1), own("d", 1))
	write(t, s, counted("one", "a", 1), counted("two", "b", 1))
	found(t, s, "with documents")
	if err := second(db.Collection("own").DeleteMany(t.Context(), bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{"b", "c"}}}}})); err != nil {
		t.Fatal(err)
	}
	found(t, s, "some removed")
	for _, collection := range []string{"totals", projection.Positions} {
		if err := empty(t.Context(), db.Collection(collection)); err != nil {
			t.Fatal(err)
		}
	}
	found(t, s, "all of a projection removed")
	write(t, s, counted("one", "a", 1))
	found(t, s, "and begun anew")
	if err := empty(t.Context(), db.Collection("totals")); err != nil {
		t.Fatal(err)
	}
	found(t, another(db.Client(), db.Name(), 24*time.Hour), "emptied again", "totals")
}
