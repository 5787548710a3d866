package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"changerelay/services/e2e/internal/harness/orders"
)

// Fields of an event's document, as the publisher's defaults name them.
const (
	fieldAggregate = "aggregateId"
	fieldVersion   = "version"
	fieldType      = "type"
	fieldTime      = "time"
	fieldData      = "data"
)

// retryPause is how long a write that did not come through waits before it is
// tried again.
const retryPause = 200 * time.Millisecond

// Writer inserts events with majority write concern. It may be used by one
// goroutine at a time, or the order of an aggregate's events is anyone's guess.
type Writer struct {
	collection *mongo.Collection
	retries    int
}

// NewWriter returns a writer into the events collection.
func NewWriter(client *mongo.Client, database, collection string) *Writer {
	opts := options.Collection().SetWriteConcern(writeconcern.Majority())
	return &Writer{collection: client.Database(database).Collection(collection, opts)}
}

// Retries is how many inserts and removals had to be tried again.
func (w *Writer) Retries() int { return w.retries }

// Insert writes the events in order and returns when the majority has them. It
// goes on trying until ctx ends: an event's id says whether an insert of which
// no answer came was done after all.
func (w *Writer) Insert(ctx context.Context, events []orders.Event) error {
	docs := make([]any, len(events))
	for i, e := range events {
		docs[i] = Document(e)
	}
	return w.persist(ctx, func() error {
		for len(docs) > 0 {
			done, err := w.insert(ctx, docs)
			docs = docs[done:]
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// persist tries until it succeeds or ctx ends.
func (w *Writer) persist(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		w.retries++
		pause := time.NewTimer(retryPause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return fmt.Errorf("%w (last error: %w)", context.Cause(ctx), err)
		case <-pause.C:
		}
	}
}

// insert tries once and returns how many of the documents are in for certain.
func (w *Writer) insert(ctx context.Context, docs []any) (done int, err error) {
	_, err = w.collection.InsertMany(ctx, docs)
	if err == nil {
		return len(docs), nil
	}
	bulk := mongo.BulkWriteException{}
	if !errors.As(err, &bulk) || len(bulk.WriteErrors) == 0 || bulk.WriteConcernError != nil {
		return 0, fmt.Errorf("insert into %s: %w", w.collection.Name(), err)
	}
	// The insert is ordered: all before the first error are in. A duplicate key
	// says that an earlier try had put this one in as well.
	first := bulk.WriteErrors[0]
	if mongo.IsDuplicateKeyError(first) {
		return first.Index + 1, nil
	}
	return first.Index, fmt.Errorf("insert into %s: %w", w.collection.Name(), err)
}

// Document is the document of an event, as Insert writes it.
func Document(e orders.Event) bson.D {
	return bson.D{
		{Key: "_id", Value: e.ID()},
		{Key: fieldAggregate, Value: e.Aggregate},
		{Key: fieldVersion, Value: e.Version},
		{Key: fieldType, Value: e.Type},
		{Key: fieldTime, Value: e.Time},
		{Key: fieldData, Value: e.Data},
	}
}
