package readmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// Parked are the messages that are kept aside, in parked_messages, to be applied, listed
// or discarded.
type Parked struct {
	*database
	halts   *Halts
	writes  *Writes
	skipped *Skipped
	room    *room
}

var _ delivery.ParkedMessages = (*Parked)(nil)

// HaltedAggregate is what an operator is shown of a halt.
type HaltedAggregate = haltedAggregate

// HaltedFor are the ids of the aggregates that are halted for a reason that begins so,
// in their order; of all with "".
func (s *Halts) HaltedFor(ctx context.Context, reason string) ([]string, error) {
	filter := bson.D{}
	if reason != "" {
		filter = bson.D{{Key: "reason", Value: bson.D{{Key: "$regex", Value: "^" + regexp.QuoteMeta(reason)}}}}
	}
	cursor, err := s.own(projection.HaltedAggregates).Find(ctx, filter,
		options.Find().SetProjection(bson.D{{Key: "_id", Value: 1}}).SetSort(bson.D{{Key: "_id", Value: 1}}))
	if err != nil {
		return nil, fmt.Errorf("list halted aggregates: %w", err)
	}
	defer func() { _ = cursor.Close(context.WithoutCancel(ctx)) }()
	var ids []string
	for cursor.Next(ctx) {
		ids = append(ids, cursor.Current.Lookup("_id").StringValue())
	}
	if err := cursor.Err(); err != nil {
		return nil, fmt.Errorf("list halted aggregates: %w", err)
	}
	return ids, nil
}

// ParkedMessage is what an operator is shown of a parked message.
type ParkedMessage struct {
	AggregateID string            `json:"aggregate"`
	Sequence    contract.Sequence `json:"sequence"`
	EventID     string            `json:"event_id"`
	EventType   string            `json:"event_type"`
	Position    contract.Position `json:"position"`
	Version     *int64            `json:"version,omitempty"`
	Failed      bool              `json:"failed"`
	Reason      string            `json:"reason"`
	ParkedAt    time.Time         `json:"parked_at"`
	// Returned tells that it was dead-lettered and is put back.
	Returned bool `json:"returned,omitempty"`
	// Behind is that of delivery.ParkedMessage.
	Behind bool `json:"-"`
	// FollowedBy are the projections that followed the event when it was parked;
	// nil where that is not known.
	FollowedBy []string `json:"followed_by"`
	BodyBytes  int      `json:"body_bytes"`
	// Foreign says why the message is not one of the group's, where it is none.
	Foreign string `json:"foreign,omitempty"`

	// Message is the whole message; it is not shown in a list.
	Message contract.Message `json:"-"`
}

// Each calls each for the parked messages, in order of aggregate and
// sequence: those of one aggregate, or of all where it is "".
func (s *Parked) Each(ctx context.Context, aggregate string, each func(ParkedMessage) error) error {
	return s.read(ctx, aggregate, 0, each)
}

// listedAtOnce is how many parked messages the server sends at once: each may be
// large, and a listing has one in hand.
const listedAtOnce = 4

// read calls each for the first parked messages, for all where limit is 0.
func (s *Parked) read(ctx context.Context, aggregate string, limit int, each func(ParkedMessage) error) error {
	fed, err := s.feeding(ctx)
	if err != nil {
		return err
	}
	cursor, err := s.own(projection.ParkedMessages).Find(ctx, ofAggregate(aggregate),
		options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(int64(limit)).SetBatchSize(int32(cmp.Or(limit, listedAtOnce))))
	if err != nil {
		return fmt.Errorf("list parked messages: %w", err)
	}
	defer func() { _ = cursor.Close(context.WithoutCancel(ctx)) }()
	for cursor.Next(ctx) {
		var p parkedMessage
		if err := cursor.Decode(&p); err != nil {
			return fmt.Errorf("read a parked message: %w", err)
		}
		err := each(ParkedMessage{
			AggregateID: p.Key.AggregateID, Sequence: p.Key.Sequence, EventID: p.Key.EventID, EventType: p.EventType,
			Position: p.Position, Version: p.Version, Failed: p.Failed, Reason: p.Reason, ParkedAt: p.ParkedAt, Returned: p.Returned, Behind: p.Behind, FollowedBy: p.FollowedBy,
			BodyBytes: len(p.Message.Body), Message: p.Message.message(), Foreign: fed.foreign(&p),
		})
		if err != nil {
			return err
		}
	}
	if err := cursor.Err(); err != nil {
		return fmt.Errorf("list parked messages: %w", err)
	}
	return nil
}

// ofAggregate finds an aggregate's parked messages by the order of their keys;
// all where it is "".
func ofAggregate(aggregate string) bson.D {
	if aggregate == "" {
		return bson.D{}
	}
	return bson.D{{Key: "_id", Value: bson.D{
		{Key: "$gte", Value: bson.D{{Key: "aggregateId", Value: aggregate}, {Key: "sequence", Value: ""}}},
		{Key: "$lt", Value: bson.D{{Key: "aggregateId", Value: aggregate}, {Key: "sequence", Value: bson.MaxKey{}}}},
	}}}
}

// mostOfPage is how many messages a page has at most.
const mostOfPage = 20

// Next implements delivery.ParkedMessages. It asks for the messages only when it has room
// for what they weigh.
func (s *Parked) Next(ctx context.Context, aggregate string) (messages []delivery.ParkedMessage, done func(), err error) {
	weights, err := s.weights(ctx, aggregate)
	if err != nil {
		return nil, nil, err
	}
	n, bytes := s.room.page(weights)
	if n == 0 {
		return nil, func() {}, nil
	}
	if done, err = s.room.take(ctx, bytes); err != nil {
		return nil, nil, err
	}
	err = s.read(ctx, aggregate, n, func(p ParkedMessage) error {
		messages = append(messages, delivery.ParkedMessage{Message: p.Message, FollowedBy: p.FollowedBy, Returned: p.Returned, Behind: p.Behind, Foreign: p.Foreign})
		return nil
	})
	if err != nil {
		done()
		return nil, nil, err
	}
	return messages, done, nil
}

// weights are what an aggregate's first parked messages weigh, in their order. An
// older release has not noted it; then it is what the document does.
func (s *Parked) weights(ctx context.Context, aggregate string) ([]int64, error) {
	cursor, err := s.own(projection.ParkedMessages).Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: ofAggregate(aggregate)}},
		{{Key: "$sort", Value: bson.D{{Key: "_id", Value: 1}}}},
		{{Key: "$limit", Value: mostOfPage}},
		{{Key: "$project", Value: bson.D{{Key: "_id", Value: 0}, {Key: "weight", Value: bson.D{{Key: "$ifNull", Value: bson.A{"$weight", bson.D{{Key: "$bsonSize", Value: "$$ROOT"}}}}}}}}},
	})
	if err != nil {
		return nil, fmt.Errorf("weigh parked messages of aggregate %q: %w", aggregate, err)
	}
	var found []struct {
		Weight int64 `bson:"weight"`
	}
	if err := cursor.All(ctx, &found); err != nil {
		return nil, fmt.Errorf("weigh parked messages of aggregate %q: %w", aggregate, err)
	}
	weights := make([]int64, len(found))
	for i := range found {
		weights[i] = found[i].Weight
	}
	return weights, nil
}

// Unpark implements delivery.ParkedMessages. The halt counts it in the same transaction: what
// is gone and was not counted was lost.
func (s *Parked) Unpark(ctx context.Context, e *contract.Event) (bool, error) {
	there := false
	err := s.together(ctx, func(ctx context.Context) (err error) {
		there, err = s.unpark(ctx, e)
		return err
	})
	return there && err == nil, err
}

// unpark is Unpark in a transaction.
func (s *Parked) unpark(ctx context.Context, e *contract.Event) (there bool, err error) {
	result, err := s.own(projection.ParkedMessages).DeleteOne(ctx, bson.D{{Key: "_id", Value: parkedKey{e.AggregateID, e.Sequence, e.ID}}})
	if err != nil {
		return false, fmt.Errorf("take a parked message of aggregate %q away: %w", e.AggregateID, err)
	}
	if result.DeletedCount == 0 {
		return false, nil
	}
	return true, s.halts.uncount(ctx, e.AggregateID, e.Sequence)
}

// discard is a document of applied_positions: an operator has discarded the event. It
// goes with the tombstones, which are kept for longer than a message can come again.
type discard struct {
	Key         parkedKey `bson:"_id"`
	DiscardedAt time.Time `bson:"discardedAt"`
}

// Discard is Unpark by an operator's decision: the event is known as discarded when
// its message comes again. One of which only the place was kept is not: nobody has
// seen its body, which is in the dead letters.
func (s *Parked) Discard(ctx context.Context, p *ParkedMessage) error {
	e := &contract.Event{AggregateID: p.AggregateID, Sequence: p.Sequence, ID: p.EventID}
	return s.together(ctx, func(ctx context.Context) error {
		if there, err := s.unpark(ctx, e); err != nil || !there || isShell(&p.Message) {
			return err
		}
		d := discard{parkedKey{e.AggregateID, e.Sequence, e.ID}, time.Now()}
		_, err := s.own(projection.Positions).ReplaceOne(ctx, bson.D{{Key: "_id", Value: d.Key}}, d, options.Replace().SetUpsert(true))
		if err != nil {
			return fmt.Errorf("note in %q that event %q is discarded: %w", projection.Positions, e.ID, err)
		}
		return nil
	})
}

// Discarded implements delivery.Parking.
func (s *Parking) Discarded(ctx context.Context, e *contract.Event) (bool, error) {
	err := s.own(projection.Positions).FindOne(ctx, bson.D{{Key: "_id", Value: parkedKey{e.AggregateID, e.Sequence, e.ID}}}).Err()
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return false, fmt.Errorf("look up whether event %q of aggregate %q is discarded: %w", e.ID, e.AggregateID, err)
	}
	return err == nil, nil
}

// Lift implements delivery.ParkedMessages.
func (s *Parked) Lift(ctx context.Context, aggregate string) (bool, error) {
	lifted := false
	err := s.together(ctx, func(ctx context.Context) error {
		lifted = false
		err := s.own(projection.ParkedMessages).FindOne(ctx, ofAggregate(aggregate),
			options.FindOne().SetProjection(bson.D{{Key: "_id", Value: 1}})).Err()
		if err == nil {
			return nil
		}
		if !errors.Is(err, mongo.ErrNoDocuments) {
			return fmt.Errorf("look for parked messages of aggregate %q: %w", aggregate, err)
		}
		lifted = true
		_, err = s.own(projection.HaltedAggregates).DeleteOne(ctx, bson.D{{Key: "_id", Value: aggregate}})
		if err != nil {
			return fmt.Errorf("lift the halt of aggregate %q: %w", aggregate, err)
		}
		if err := s.halts.forgetHalt(ctx, aggregate); err != nil {
			return err
		}
		return s.halts.unmark(ctx, aggregate)
	})
	return lifted && err == nil, err
}

// message is the message as it was received. Numbers and times may come back in
// another width, which the contract allows.
func (c *parkedContent) message() contract.Message {
	m := contract.Message{
		ID: c.ID, SessionID: c.SessionID, PartitionKey: c.PartitionKey, Subject: c.Subject,
		ContentType: c.ContentType, ContentEncoding: c.ContentEncoding, Body: c.Body,
		Properties: make(map[string]any, len(c.Properties)+len(c.Others)),
	}
	for _, e := range c.Properties {
		m.Properties[e.Key] = received(e.Value)
	}
	for _, p := range c.Others {
		m.Properties[p.Name] = received(p.Value)
	}
	return m
}

// received is a property's value as messages have it.
func received(v any) any {
	if at, ok := v.(bson.DateTime); ok {
		return at.Time().UTC()
	}
	return v
}

// LastSkipped implements delivery.Records.
func (s *Parked) LastSkipped(ctx context.Context, aggregate string) (contract.Sequence, error) {
	return s.skipped.LastSkipped(ctx, aggregate)
}

// SkippedBy implements delivery.Records.
func (s *Parked) SkippedBy(ctx context.Context, e *contract.Event) ([]string, error) {
	return s.skipped.SkippedBy(ctx, e)
}

// Reapplied implements delivery.ParkedMessages.
func (s *Parked) Reapplied(ctx context.Context, e *contract.Event, names []string) error {
	return s.skipped.applied(ctx, e, names)
}

// Position implements delivery.ParkedMessages.
func (s *Parked) Position(ctx context.Context, w *projection.Write) (delivery.Position, error) {
	return s.writes.Position(ctx, w)
}

// Mark implements delivery.ParkedMessages.
func (s *Parked) Mark(ctx context.Context, aggregate string) (*projection.Halted, error) {
	return s.halts.Mark(ctx, aggregate)
}
