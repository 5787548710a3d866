// Package readmodel reads a read model as any application would: with the
// official driver, majority read concern, and no knowledge of who wrote it.
package readmodel

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/plain"
)

// readBatch is how many documents a reply brings.
const readBatch = 10_000

// Model is the content of a read model's collection.
type Model struct {
	// Documents are the documents by id, in plain form, without id and bookkeeping.
	// A deleted one, of which only its position is kept, is none of them; one that keeps
	// more is.
	Documents map[string]map[string]any
	// Positions say what each document, deleted or not, says of how far it has come.
	Positions map[string]validate.Position
}

// Read reads the whole collection.
func Read(ctx context.Context, client *mongo.Client, database, collection string) (Model, error) {
	m := Model{Documents: make(map[string]map[string]any), Positions: make(map[string]validate.Position)}
	return m, Each(ctx, client, database, collection, m.add)
}

// Each calls each for every document of the collection, which is each's until it
// returns.
func Each(ctx context.Context, client *mongo.Client, database, collection string, each func(bson.Raw) error) error {
	docs := client.Database(database).Collection(collection, options.Collection().SetReadConcern(readconcern.Majority()))
	cursor, err := docs.Find(ctx, bson.D{}, options.Find().SetBatchSize(readBatch))
	if err != nil {
		return fmt.Errorf("read %s.%s: %w", database, collection, err)
	}
	defer cursor.Close(context.WithoutCancel(ctx))
	for cursor.Next(ctx) {
		if err := each(cursor.Current); err != nil {
			return fmt.Errorf("read %s.%s: %w", database, collection, err)
		}
	}
	if err := cursor.Err(); err != nil {
		return fmt.Errorf("read %s.%s: %w", database, collection, err)
	}
	return nil
}

func (m Model) add(raw bson.Raw) error {
	doc, err := plain.Document(raw)
	if err != nil {
		return err
	}
	id, deleted := fmt.Sprint(doc["_id"]), false
	if relay, ok := raw.Lookup(bookkeeping).DocumentOK(); ok {
		m.Positions[id] = PositionOf(raw)
		_, err := relay.LookupErr("deletedAt")
		deleted = err == nil
	}
	delete(doc, "_id")
	delete(doc, bookkeeping)
	if !deleted || len(doc) > 0 {
		m.Documents[id] = doc
	}
	return nil
}

// bookkeeping is the field that says how far a document has come.
const bookkeeping = "_relay"

// PositionOf is what a document says of how far it has come.
func PositionOf(raw bson.Raw) validate.Position {
	text := func(field string) string {
		s, _ := raw.Lookup(bookkeeping, field).StringValueOK()
		return s
	}
	p := validate.Position{ID: text("eventId"), Type: text("eventType"), Sequence: text("sequence")}
	p.Time, _ = raw.Lookup(bookkeeping, "eventTime").DateTimeOK()
	p.Version, _ = raw.Lookup(bookkeeping, "aggregateVersion").AsInt64OK()
	_, err := raw.LookupErr(bookkeeping, "halted")
	p.Halted = err == nil
	return p
}
