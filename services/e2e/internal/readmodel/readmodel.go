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

	"changerelay/services/e2e/internal/plain"
)

// readBatch is how many documents a reply brings.
const readBatch = 10_000

// Model is the content of a read model's collection.
type Model struct {
	// Documents are the documents by id, in plain form, without id and bookkeeping.
	// A deleted one, of which only its position is kept, is none of them.
	Documents map[string]map[string]any
	// Versions say which version of its aggregate each document has come to,
	// deleted or not.
	Versions map[string]int64
}

// Read reads the whole collection.
func Read(ctx context.Context, client *mongo.Client, database, collection string) (Model, error) {
	docs := client.Database(database).Collection(collection, options.Collection().SetReadConcern(readconcern.Majority()))
	cursor, err := docs.Find(ctx, bson.D{}, options.Find().SetBatchSize(readBatch))
	if err != nil {
		return Model{}, fmt.Errorf("read %s.%s: %w", database, collection, err)
	}
	defer cursor.Close(context.WithoutCancel(ctx))
	m := Model{Documents: make(map[string]map[string]any), Versions: make(map[string]int64)}
	for cursor.Next(ctx) {
		doc, err := plain.Document(cursor.Current)
		if err != nil {
			return Model{}, fmt.Errorf("read %s.%s: %w", database, collection, err)
		}
		m.add(doc)
	}
	if err := cursor.Err(); err != nil {
		return Model{}, fmt.Errorf("read %s.%s: %w", database, collection, err)
	}
	return m, nil
}

func (m Model) add(doc map[string]any) {
	id := fmt.Sprint(doc["_id"])
	if relay, ok := doc["_relay"].(map[string]any); ok {
		m.Versions[id], _ = relay["aggregateVersion"].(int64)
		if _, deleted := relay["deletedAt"]; deleted {
			return
		}
	}
	delete(doc, "_id")
	delete(doc, "_relay")
	m.Documents[id] = doc
}
