package source

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"changerelay/services/e2e/internal/harness/orders"
)

// KeepImages makes a collection whose changes show the document before and after them.
func KeepImages(ctx context.Context, uri, database, collection string) error {
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		return fmt.Errorf("connect to MongoDB: %w", err)
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	kept := options.CreateCollection().SetChangeStreamPreAndPostImages(bson.D{{Key: "enabled", Value: true}})
	if err := client.Database(database).CreateCollection(ctx, collection, kept); err != nil {
		return fmt.Errorf("make %s.%s: %w", database, collection, err)
	}
	return nil
}

// DocumentWriter keeps one document for each aggregate, as an application without
// events does: an event is one change of its aggregate's document, which is inserted,
// updated, replaced or deleted. It is safe for concurrent use, but the events of one
// aggregate must come in their order, and all to one writer.
type DocumentWriter struct {
	writer *Writer

	mu    sync.Mutex      // guards what follows
	alive map[string]bool // aggregates that have a document
}

// NewDocumentWriter returns a writer into the collection.
func NewDocumentWriter(client *mongo.Client, database, collection string) *DocumentWriter {
	opts := options.Collection().SetWriteConcern(writeconcern.Majority())
	return &DocumentWriter{writer: &Writer{collection: client.Database(database).Collection(collection, opts)}, alive: make(map[string]bool)}
}

// Insert makes the changes in order, each once, and returns when the majority has them.
// It goes on trying until ctx ends: a document's version says whether a change of which
// no answer came was made after all. In one command no aggregate is inserted and
// deleted, for a second try would insert it again.
func (w *DocumentWriter) Insert(ctx context.Context, events []orders.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var changes []mongo.WriteModel
	inserted := make(map[string]bool)
	for _, e := range events {
		ends := w.alive[e.Aggregate] && e.Type == orders.Erased
		if ends && inserted[e.Aggregate] {
			if err := w.write(ctx, changes); err != nil {
				return err
			}
			changes = nil
			clear(inserted)
		}
		inserted[e.Aggregate] = inserted[e.Aggregate] || !w.alive[e.Aggregate]
		changes = append(changes, changeFor(e, w.alive[e.Aggregate]))
		w.alive[e.Aggregate] = !ends
	}
	return w.write(ctx, changes)
}

// write makes changes until all are made.
func (w *DocumentWriter) write(ctx context.Context, changes []mongo.WriteModel) error {
	return w.writer.persist(ctx, func() error {
		for len(changes) > 0 {
			_, err := w.writer.collection.BulkWrite(ctx, changes)
			if err == nil {
				return nil
			}
			failed := mongo.BulkWriteException{}
			if !errors.As(err, &failed) || len(failed.WriteErrors) == 0 || failed.WriteConcernError != nil || !mongo.IsDuplicateKeyError(failed.WriteErrors[0]) {
				return fmt.Errorf("change documents of %s: %w", w.writer.collection.Name(), err)
			}
			changes = changes[failed.WriteErrors[0].Index+1:] // it was inserted by an earlier try
		}
		return nil
	})
}

// kinds is how many kinds of changes take turns with the documents that there are.
const kinds = 4

// changeFor is the change that an event stands for. Where the document is not at the
// version before it, the change was made already, and changes nothing.
func changeFor(e orders.Event, alive bool) mongo.WriteModel {
	before := bson.D{{Key: "_id", Value: e.Aggregate}, {Key: fieldVersion, Value: e.Version - 1}}
	set := bson.D{{Key: fieldVersion, Value: e.Version}, {Key: fieldType, Value: e.Type}, {Key: fieldTime, Value: e.Time}, {Key: fieldData, Value: e.Data}}
	whole := append(bson.D{{Key: "_id", Value: e.Aggregate}}, set...)
	whole = append(whole, bson.E{Key: "steps", Value: bson.A{e.Version, "a", nil}}, bson.E{Key: "once", Value: e.Version})
	switch {
	case !alive:
		return mongo.NewInsertOneModel().SetDocument(whole)
	case e.Type == orders.Erased:
		return mongo.NewDeleteOneModel().SetFilter(before)
	}
	switch e.Version % kinds {
	case 0:
		return mongo.NewReplaceOneModel().SetFilter(before).SetReplacement(whole)
	case 1:
		set = append(set, bson.E{Key: "steps.1", Value: e.Version})
		return mongo.NewUpdateOneModel().SetFilter(before).SetUpdate(bson.D{{Key: "$set", Value: set}})
	case 2:
		return mongo.NewUpdateOneModel().SetFilter(before).SetUpdate(bson.D{{Key: "$set", Value: set}, {Key: "$unset", Value: bson.D{{Key: "once", Value: ""}}}})
	}
	return mongo.NewUpdateOneModel().SetFilter(before).SetUpdate(bson.D{{Key: "$set", Value: set}})
}
