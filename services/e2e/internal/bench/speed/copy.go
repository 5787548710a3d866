package speed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// mostSent bounds how many events the plain send of a copy has in memory. It sends them
// again as those of other aggregates, until it has sent as many as there are.
const mostSent = 200_000

// Copied compares a copy with what bounds it.
type Copied struct {
	// Read is a plain sorted read with the bare driver, Send the same messages with
	// the bare SDK, Publisher the copy.
	Read, Send, Publisher Rate
}

// Copy measures a copy of all events, which have the index that serves it.
func Copy(ctx context.Context, c Config) (r Copied, err error) {
	var read []event
	r.Read, err = c.measure(ctx, func(ctx context.Context, s *site) (t took, err error) {
		t, read, err = s.readSorted(ctx)
		return t, err
	})
	if err != nil {
		return r, fmt.Errorf("plain sorted read: %w", err)
	}
	shape := shapes[0]
	r.Send, err = c.measure(ctx, func(ctx context.Context, s *site) (took, error) {
		return s.send(ctx, shape.bareSenders, slices.Collect(shape.batches(read)), c.Events)
	})
	if err != nil {
		return r, fmt.Errorf("plain send: %w", err)
	}
	r.Publisher, err = c.measure(ctx, func(ctx context.Context, s *site) (took, error) {
		if err := s.index(ctx); err != nil {
			return took{}, err
		}
		return s.publish(ctx, 1, map[string]string{"BATCHING": shape.batching, "START_AT": "snapshot"})
	})
	if err != nil {
		return r, fmt.Errorf("copy: %w", err)
	}
	return r, nil
}

// Order is what a copy or a resend goes along.
func Order() bson.D {
	return bson.D{{Key: "aggregateId", Value: 1}, {Key: "version", Value: 1}, {Key: "_id", Value: 1}}
}

// index makes the index of a copy.
func (s *site) index(ctx context.Context) error {
	_, err := s.events.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: Order()})
	return err
}

// readSorted reads all events in the order of a copy, and keeps some for the bare
// SDK to send.
func (s *site) readSorted(ctx context.Context) (t took, read []event, err error) {
	if err := s.index(ctx); err != nil {
		return took{}, nil, err
	}
	since := since(ownCPU)
	cursor, err := s.events.Find(ctx, bson.D{}, options.Find().SetSort(Order()).SetBatchSize(streamBatch))
	if err != nil {
		return took{}, nil, err
	}
	defer func() { err = errors.Join(err, cursor.Close(context.WithoutCancel(ctx))) }()
	n := 0
	for ; cursor.Next(ctx); n++ {
		if n < mostSent {
			read = append(read, eventIn(cursor.Current))
		}
	}
	return since(n), read, cursor.Err()
}
