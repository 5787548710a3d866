package readmodel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

// counted is the nth event of an aggregate, counted in a document of many.
func counted(document, aggregate string, n int64) projection.Write {
	return projection.Write{
		Projection: "totals", Collection: "totals", ID: document, Keyed: true, Event: readmodeltest.Event(aggregate, n),
		Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "events", Value: 1}}}},
	}
}

// newTotals is a store whose projections have documents of many aggregates, and of one.
func newTotals(t *testing.T) (*readmodel.Store, *mongo.Database) {
	t.Helper()
	client, database := servers.Mongo(t, nil)
	return readmodel.New(client, readmodel.Config{
		Database: database, Feed: readmodel.Feed{Topic: "topic", Subscription: "projector"},
		Projections: []projection.Part{{Name: "own", Collections: []string{"own"}}, {Name: "totals", Collections: []string{"totals"}}},
	}), client.Database(database)
}

func write(t *testing.T, s *readmodel.Store, writes ...projection.Write) {
	t.Helper()
	if _, err := s.Writes.Write(t.Context(), writes); err != nil {
		t.Fatal(err)
	}
}

// events is how many events a document of totals has counted.
func events(t *testing.T, db *mongo.Database, document string) (n int) {
	t.Helper()
	var read struct{ Events int }
	if err := db.Collection("totals").FindOne(t.Context(), bson.D{{Key: "_id", Value: document}}).Decode(&read); err != nil {
		t.Fatal(err)
	}
	return read.Events
}

func TestPositions_WithoutThemNothingIsCountedAgain(t *testing.T) {
	t.Parallel()
	passed := counted("", "c", 1)
	passed.Collection, passed.Update, passed.Passed = "", nil, true
	for name, lose := range map[string]func(context.Context, *mongo.Collection) error{
		"dropped": func(ctx context.Context, c *mongo.Collection) error { return c.Drop(ctx) },
		"deleted": func(ctx context.Context, c *mongo.Collection) error { return second(c.DeleteMany(ctx, bson.D{})) },
		"of totals": func(ctx context.Context, c *mongo.Collection) error {
			return second(c.DeleteMany(ctx, bson.D{{Key: "_id.projection", Value: "totals"}}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, db := newTotals(t)
			other := counted("all", "a", 1)
			other.Projection, other.Collection = "others", "others"
			own := counted("a", "a", 1)
			own.Projection, own.Collection, own.Keyed = "own", "own", false
			write(t, s, own, other)
			write(t, s, counted("all", "a", 1), counted("all", "a", 2), counted("one", "b", 1))
			if single, err := s.Writes.CheckPositions(t.Context()); err != nil || len(single) > 0 {
				t.Fatalf("while nothing is lost: %q and %v", single, err)
			}
			positions := db.Collection(projection.Positions)
			if err := lose(t.Context(), positions); err != nil {
				t.Fatal(err)
			}
			for _, again := range [][]projection.Write{
				{counted("all", "a", 1)}, {counted("all", "a", 3)}, {counted("all", "c", 1)}, {counted("new", "c", 1), counted("all", "d", 1)}, {passed},
			} {
				if _, err := s.Writes.Write(t.Context(), again); !errors.Is(err, readmodel.ErrPositionsLost) || !strings.Contains(err.Error(), "Restore both") {
					t.Errorf("event %s: got %v, want that positions are lost", again[0].Event.ID, err)
				}
			}
			if _, err := s.Writes.CheckPositions(t.Context()); !errors.Is(err, readmodel.ErrPositionsLost) {
				t.Errorf("a look: got %v, want that positions are lost", err)
			}
			if e, err := s.Examine(t.Context(), []string{"totals"}, nil, time.Hour); err != nil || !strings.Contains(e.Facts.PositionsLost, "Restore both") {
				t.Errorf("the doctor: got %q and %v, want that positions are lost", e.Facts.PositionsLost, err)
			}
			if n := events(t, db, "all"); n != 2 {
				t.Errorf("%d events are counted, want two", n)
			}
			if n, err := positions.CountDocuments(t.Context(), bson.D{{Key: "_id.projection", Value: "totals"}}); err != nil || n != 0 {
				t.Errorf("%d positions and %v, want that none looks as if all were there", n, err)
			}
		})
	}
}

// Where some entries are lost, the documents that the aggregate was the last to
// change tell it.
func TestPositions_OneThatIsLostIsMissedByItsDocument(t *testing.T) {
	t.Parallel()
	s, db := newTotals(t)
	write(t, s, counted("all", "b", 1), counted("all", "a", 3), counted("all", "a", 4), counted("one", "b", 2))
	if _, err := db.Collection(projection.Positions).DeleteOne(t.Context(), bson.D{{Key: "_id.aggregateId", Value: "a"}}); err != nil {
		t.Fatal(err)
	}
	for name, writes := range map[string][]projection.Write{
		"alone":            {counted("all", "a", 4)},
		"an earlier one":   {counted("all", "a", 3)},
		"with the next":    {counted("all", "a", 4), counted("all", "a", 5)},
		"before another's": {counted("all", "a", 4), counted("all", "b", 5)},
		"after another's":  {counted("all", "b", 3), counted("all", "a", 4)},
	} {
		_, err := s.Writes.Write(t.Context(), writes)
		rejected, ok := errors.AsType[*delivery.RejectedError](err)
		if !ok || writes[rejected.Index].Event.AggregateID != "a" || !strings.Contains(rejected.Reason, "positions are lost") {
			t.Errorf("%s: got %#v, want the event of a rejected", name, err)
		}
	}
	if single, err := s.Writes.CheckPositions(t.Context()); err != nil || len(single) != 1 || !strings.Contains(single[0], `document "all" of "totals"`) {
		t.Errorf("a look: got %q and %v, want the document named", single, err)
	}
	write(t, s, counted("all", "a", 5), counted("all", "b", 3))
	if n := events(t, db, "all"); n != 5 {
		t.Errorf("%d events are counted, want five", n)
	}
}

// What one event asks of a document more than once is applied as often, also where it is
// not coalesced into one update.
func TestPositions_AnEventChangesADocumentMoreThanOnce(t *testing.T) {
	t.Parallel()
	s, db := newTotals(t)
	writes := []projection.Write{counted("all", "a", 1), counted("all", "a", 1), counted("all", "a", 2), counted("all", "a", 2)}
	writes[1].Event, writes[3].Event = writes[0].Event, writes[2].Event
	for i := range writes {
		writes[i].Update = bson.D{{Key: "$inc", Value: bson.D{{Key: "events", Value: 0.5}}}}
	}
	write(t, s, counted("all", "b", 1))
	for range 2 {
		write(t, s, writes[:2]...)
		write(t, s, writes...)
	}
	if n := events(t, db, "all"); n != 3 {
		t.Errorf("got %d, want one of b, and four halves", n)
	}
	if _, err := db.Collection(projection.Positions).DeleteOne(t.Context(), bson.D{{Key: "_id.aggregateId", Value: "a"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Writes.Write(t.Context(), writes[2:]); err == nil || !strings.Contains(err.Error(), "positions are lost") {
		t.Errorf("without positions: got %v, want the event rejected", err)
	}
}

// To a projection with another name its positions are lost, until they are carried
// over as docs/operations.md says.
func TestPositions_AreCarriedOverToAnotherName(t *testing.T) {
	t.Parallel()
	s, db := newTotals(t)
	write(t, s, counted("all", "a", 1), counted("all", "a", 2), counted("all", "b", 1))
	renamed := readmodel.New(db.Client(), readmodel.Config{
		Database: db.Name(), Projections: []projection.Part{{Name: "sums", Collections: []string{"totals"}}},
	})
	_, err := renamed.Writes.CheckPositions(t.Context())
	if !errors.Is(err, readmodel.ErrPositionsLost) || !strings.Contains(err.Error(), "the projection had another name") || !strings.Contains(err.Error(), `document "all" of "totals"`) {
		t.Errorf("with another name: got %v, want the document named, and the name as a cause", err)
	}
	cursor, err := db.Collection(projection.Positions).Aggregate(t.Context(), mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: "_id.projection", Value: "totals"}}}},
		{{Key: "$set", Value: bson.D{{Key: "_id.projection", Value: "sums"}}}},
		{{Key: "$merge", Value: bson.D{{Key: "into", Value: projection.Positions}, {Key: "whenMatched", Value: "fail"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := cursor.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if single, err := renamed.Writes.CheckPositions(t.Context()); err != nil || len(single) > 0 {
		t.Errorf("carried over: got %v, want that nothing is lost", err)
	}
	for _, aggregate := range []string{"a", "b"} {
		again, next := counted("all", aggregate, 1), counted("all", aggregate, 3)
		again.Projection, next.Projection = "sums", "sums"
		write(t, renamed, again)
		write(t, renamed, next)
	}
	if n := events(t, db, "all"); n != 5 {
		t.Errorf("%d events are counted, want five: each once", n)
	}
}

// A document that somebody else has put there, with what a projector had written
// elsewhere, proves nothing, however often it is looked at. A second one does.
func TestPositions_OneStrayDocumentIsNoProof(t *testing.T) {
	t.Parallel()
	s, db := newTotals(t)
	write(t, s, counted("all", "a", 1), counted("one", "b", 1))
	stray := func(id string) {
		t.Helper()
		relay := bson.D{{Key: "sequence", Value: readmodeltest.Event(id, 7).Sequence}, {Key: "aggregateId", Value: id}}
		if _, err := db.Collection("totals").InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}, {Key: "_relay", Value: relay}}); err != nil {
			t.Fatal(err)
		}
	}
	looks := func(want string) {
		t.Helper()
		single, err := s.Writes.CheckPositions(t.Context())
		if err != nil || len(single) != 1 || !strings.Contains(single[0], want) {
			t.Errorf("got %q and %v, want %s named", single, err, want)
		}
		e, err := s.Examine(t.Context(), []string{"totals"}, nil, time.Hour)
		if err != nil || e.Facts.PositionsLost != "" || len(e.Facts.Unnoted) != 1 || !strings.Contains(e.Facts.Unnoted[0], want) {
			t.Errorf("the doctor: got %q, %q and %v, want %s named", e.Facts.PositionsLost, e.Facts.Unnoted, err, want)
		}
	}
	stray("x")
	looks(`document "x" of "totals"`)
	write(t, s, counted("all", "a", 2))

	// Another one in its place is a single one, too.
	if _, err := db.Collection("totals").DeleteOne(t.Context(), bson.D{{Key: "_id", Value: "x"}}); err != nil {
		t.Fatal(err)
	}
	stray("y")
	looks(`document "y" of "totals"`)

	// Of many documents a look sees few, and what one has seen another remembers.
	for n := range 40 {
		write(t, s, counted(fmt.Sprint(n), "a", int64(n+3)))
	}
	looks(`document "y" of "totals"`)
	stray("z")
	for looked := 0; ; looked++ {
		_, err := s.Writes.CheckPositions(t.Context())
		if errors.Is(err, readmodel.ErrPositionsLost) {
			break
		}
		if err != nil || looked > 1000 {
			t.Fatalf("got %v after %d looks, want that positions are lost", err, looked)
		}
	}
}

// A document may be seen before its position where they are on two shards and the
// transaction is being committed. A read in a transaction waits for that.
func TestPositions_AreLookedUpInATransaction(t *testing.T) {
	t.Parallel()
	var sent recorder
	client, database := servers.Mongo(t, sent.monitor())
	s := readmodel.New(client, readmodel.Config{Database: database, Projections: []projection.Part{{Name: "totals", Collections: []string{"totals"}}}})
	write(t, s, counted("all", "a", 1))
	sent.take()
	if single, err := s.Writes.CheckPositions(t.Context()); err != nil || len(single) > 0 {
		t.Fatalf("got %q and %v, want nothing lost", single, err)
	}
	_, commands := sent.take()
	if !slices.ContainsFunc(commands, func(c bson.Raw) bool {
		from, _ := c.Lookup("find").StringValueOK()
		level, _ := c.Lookup("readConcern", "level").StringValueOK()
		return from == projection.Positions && level == "snapshot" && c.Lookup("startTransaction").Boolean()
	}) {
		t.Errorf("got %v, want the position read in a transaction", commands)
	}
}

// A document that another process writes while it is asked what keeps a write off shows
// the event, and so do the positions then: nothing is lost.
func TestPositions_AWriteThatComesBetweenIsNoLoss(t *testing.T) {
	t.Parallel()
	var between func()
	client, database := servers.Mongo(t, &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		if from, _ := e.Command.Lookup("find").StringValueOK(); from == "totals" && between != nil {
			once := between
			between = nil
			once()
		}
	}})
	parts := []projection.Part{{Name: "totals", Collections: []string{"totals"}, Keyed: true}}
	s := readmodel.New(client, readmodel.Config{Database: database, Projections: parts})
	if _, err := client.Database(database).Collection("totals").InsertOne(t.Context(), bson.D{{Key: "_id", Value: "all"}}); err != nil {
		t.Fatal(err)
	}
	between = func() {
		if _, err := client.Database(database).Collection("totals").DeleteOne(t.Context(), bson.D{{Key: "_id", Value: "all"}}); err != nil {
			t.Error(err)
		}
		write(t, s, counted("all", "a", 1))
	}
	_, err := s.Writes.Write(t.Context(), []projection.Write{counted("all", "a", 1)})
	if _, rejected := errors.AsType[*delivery.RejectedError](err); err == nil || rejected {
		t.Errorf("got %v, want it tried again", err)
	}
	if outcomes, err := s.Writes.Write(t.Context(), []projection.Write{counted("all", "a", 1)}); err != nil || outcomes[0] != delivery.Repeated {
		t.Errorf("again: got %v and %v, want a repeat", outcomes, err)
	}
}
