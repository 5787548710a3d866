package source

import (
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// takeBatch is how many events one command names.
const takeBatch = 1000

// Take removes the events with these ids and returns them as the majority had
// them, those of one aggregate in the order of their versions within a thousand
// ids. Ids that are not there are passed over. It goes on trying until ctx ends;
// with an error it returns the events that it removed before.
func (w *Writer) Take(ctx context.Context, ids []string) ([]Stored, error) {
	var taken []Stored
	for len(ids) > 0 {
		n := min(len(ids), takeBatch)
		filter := bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids[:n]}}}}
		ids = ids[n:]
		batch, err := w.take(ctx, filter)
		if err != nil {
			return taken, fmt.Errorf("take events out of %s: %w", w.collection.Name(), err)
		}
		taken = append(taken, batch...)
	}
	return taken, nil
}

// take reads all before it removes any, so that nothing goes unseen.
func (w *Writer) take(ctx context.Context, filter bson.D) (events []Stored, err error) {
	err = w.persist(ctx, func() error {
		events = events[:0]
		return read(ctx, w.collection, filter, func(e Stored) error {
			e.Document = slices.Clone(e.Document)
			events = append(events, e)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return events, w.persist(ctx, func() error {
		_, err := w.collection.DeleteMany(ctx, filter)
		return err
	})
}
