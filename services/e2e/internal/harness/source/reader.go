package source

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/plain"
)

// readBatch is how many documents a reply brings.
const readBatch = 10_000

// Stored is an event as the source holds it.
type Stored struct {
	// Event has its data in plain form.
	orders.Event
	// Document is the event's document.
	Document bson.Raw
}

// Each reads every event of the collection as the majority has it, the events
// of one aggregate in the order of their versions. A document without an
// aggregate id or a version is no event and is passed over. It stops at the
// first error of each. The document is each's until it returns.
func Each(ctx context.Context, client *mongo.Client, database, collection string, each func(Stored) error) error {
	return read(ctx, client.Database(database).Collection(collection), bson.D{}, each)
}

// read is Each for the events that match a filter.
func read(ctx context.Context, collection *mongo.Collection, filter bson.D, each func(Stored) error) error {
	name := collection.Database().Name() + "." + collection.Name()
	events := collection.Clone(options.Collection().SetReadConcern(readconcern.Majority()))
	// Ids of one aggregate sort by version, and every server has an index on ids.
	cursor, err := events.Find(ctx, filter, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetBatchSize(readBatch))
	if err != nil {
		return fmt.Errorf("read events of %s: %w", name, err)
	}
	defer cursor.Close(context.WithoutCancel(ctx))
	for cursor.Next(ctx) {
		doc, err := plain.Document(cursor.Current)
		if err != nil {
			return fmt.Errorf("read events of %s: %w", name, err)
		}
		e, ok := event(doc)
		if !ok {
			continue
		}
		if err := each(Stored{Event: e, Document: cursor.Current}); err != nil {
			return err
		}
	}
	if err := cursor.Err(); err != nil {
		return fmt.Errorf("read events of %s: %w", name, err)
	}
	return nil
}

// event reads an event from its document.
func event(doc map[string]any) (e orders.Event, ok bool) {
	version, versioned := doc[fieldVersion].(int64)
	e = orders.Event{Version: version, Data: doc[fieldData]}
	e.Aggregate, _ = doc[fieldAggregate].(string)
	e.Type, _ = doc[fieldType].(string)
	return e, versioned && e.Aggregate != ""
}
