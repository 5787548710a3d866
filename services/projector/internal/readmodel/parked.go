package readmodel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// haltedAggregate is a document of halted_aggregates; its key is the aggregate.
type haltedAggregate struct {
	AggregateID string            `bson:"_id" json:"aggregate"`
	Reason      string            `bson:"reason" json:"reason"`
	Sequence    contract.Sequence `bson:"sequence" json:"sequence"`
	Position    contract.Position `bson:"position" json:"position"`
	EventID     string            `bson:"eventId" json:"event_id"`
	EventType   string            `bson:"eventType" json:"event_type"`
	HaltedAt    time.Time         `bson:"haltedAt" json:"halted_at"`
}

// parkedKey is the key of parked_messages. Its order is the order in which an
// aggregate's messages are redriven.
type parkedKey struct {
	AggregateID string            `bson:"aggregateId"`
	Sequence    contract.Sequence `bson:"sequence"`
}

// parkedMessage is a document of parked_messages: the whole message, and what
// it says of itself.
type parkedMessage struct {
	Key            parkedKey         `bson:"_id"`
	EventID        string            `bson:"eventId"`
	EventType      string            `bson:"eventType"`
	EventTime      *time.Time        `bson:"eventTime,omitempty"`
	Position       contract.Position `bson:"position"`
	Version        *int64            `bson:"aggregateVersion,omitempty"`
	Failed         bool              `bson:"failed"`
	Reason         string            `bson:"reason"`
	Subscription   string            `bson:"subscription"`
	SequenceNumber int64             `bson:"sequenceNumber"`
	EnqueuedAt     time.Time         `bson:"enqueuedAt"`
	ParkedAt       time.Time         `bson:"parkedAt"`
	Message        parkedContent     `bson:"message"`
}

// parkedContent is a contract.Message.
type parkedContent struct {
	ID              string `bson:"id"`
	SessionID       string `bson:"sessionId"`
	PartitionKey    string `bson:"partitionKey"`
	Subject         string `bson:"subject"`
	ContentType     string `bson:"contentType"`
	ContentEncoding string `bson:"contentEncoding"`
	Properties      bson.D `bson:"properties"`
	Body            []byte `bson:"body"`
}

// Halt implements delivery.Parking.
func (s *Store) Halt(ctx context.Context, h delivery.Halt) error {
	e := &h.Event
	update := bson.D{{Key: "$setOnInsert", Value: bson.D{
		{Key: "reason", Value: h.Reason},
		{Key: "sequence", Value: e.Sequence},
		{Key: "position", Value: e.Position},
		{Key: "eventId", Value: e.ID},
		{Key: "eventType", Value: e.Type},
		{Key: "haltedAt", Value: time.Now()},
	}}}
	return s.putOnce(ctx, projection.HaltedAggregates, e.AggregateID, update)
}

// Park implements delivery.Parking.
func (s *Store) Park(ctx context.Context, messages []delivery.Parked) error {
	for i := range messages {
		document, err := bson.Marshal(parked(&messages[i], s.subscription))
		if err != nil {
			return &delivery.RejectedError{Index: i, Reason: err.Error()}
		}
		id := bson.Raw(document).Lookup("_id")
		elements, err := bson.Raw(document).Elements()
		if err != nil {
			return &delivery.RejectedError{Index: i, Reason: err.Error()}
		}
		fields := make(bson.D, 0, len(elements))
		for _, element := range elements[1:] {
			fields = append(fields, bson.E{Key: element.Key(), Value: element.Value()})
		}
		err = s.putOnce(ctx, projection.ParkedMessages, id, bson.D{{Key: "$setOnInsert", Value: fields}})
		if isAboutData(err) {
			return &delivery.RejectedError{Index: i, Reason: err.Error()}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// putOnce inserts a document unless there is one with its key.
func (s *Store) putOnce(ctx context.Context, collection string, id any, setOnInsert bson.D) error {
	_, err := s.db.Collection(collection).UpdateOne(ctx, bson.D{{Key: "_id", Value: id}}, setOnInsert,
		options.UpdateOne().SetUpsert(true))
	// Another process has inserted it between the server's search and its insert.
	if mongo.IsDuplicateKeyError(err) {
		return fmt.Errorf("write to %q: another write got in between: %w", collection, err)
	}
	if err != nil {
		return fmt.Errorf("write to %q: %w", collection, err)
	}
	return nil
}

// List implements delivery.HaltedAggregates.
func (s *Store) List(ctx context.Context, limit int) ([]string, error) {
	halted, err := s.halted(ctx, limit, bson.D{{Key: "_id", Value: 1}})
	if err != nil {
		return nil, err
	}
	aggregates := make([]string, len(halted))
	for i := range halted {
		aggregates[i] = halted[i].AggregateID
	}
	return aggregates, nil
}

func (s *Store) halted(ctx context.Context, limit int, fields bson.D) ([]haltedAggregate, error) {
	cursor, err := s.db.Collection(projection.HaltedAggregates).Find(ctx, bson.D{},
		options.Find().SetLimit(int64(limit)).SetProjection(fields).SetSort(bson.D{{Key: "_id", Value: 1}}))
	if err != nil {
		return nil, fmt.Errorf("list halted aggregates: %w", err)
	}
	var halted []haltedAggregate
	if err := cursor.All(ctx, &halted); err != nil {
		return nil, fmt.Errorf("list halted aggregates: %w", err)
	}
	return halted, nil
}

// Halted implements delivery.HaltedAggregates.
func (s *Store) Halted(ctx context.Context, aggregate string) (bool, error) {
	err := s.db.Collection(projection.HaltedAggregates).FindOne(ctx, bson.D{{Key: "_id", Value: aggregate}},
		options.FindOne().SetProjection(bson.D{{Key: "_id", Value: 1}})).Err()
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look up halted aggregate %q: %w", aggregate, err)
	}
	return true, nil
}

func parked(p *delivery.Parked, subscription string) *parkedMessage {
	e, m := &p.Event, &p.Message
	document := &parkedMessage{
		Key:            parkedKey{e.AggregateID, e.Sequence},
		EventID:        e.ID,
		EventType:      e.Type,
		Position:       e.Position,
		Failed:         p.Failed,
		Reason:         p.Reason,
		Subscription:   subscription,
		SequenceNumber: m.SequenceNumber,
		EnqueuedAt:     m.EnqueuedAt,
		ParkedAt:       time.Now(),
		Message: parkedContent{
			ID: m.ID, SessionID: m.SessionID, PartitionKey: m.PartitionKey, Subject: m.Subject,
			ContentType: m.ContentType, ContentEncoding: m.ContentEncoding, Body: m.Body,
			Properties: bson.D{},
		},
	}
	if !e.Time.IsZero() {
		document.EventTime = &e.Time
	}
	if e.Version.Known {
		document.Version = &e.Version.Number
	}
	for _, name := range slices.Sorted(maps.Keys(m.Properties)) {
		document.Message.Properties = append(document.Message.Properties, bson.E{Key: name, Value: storable(m.Properties[name])})
	}
	return document
}

// storable is an AMQP value as BSON has it. What BSON has no type for, and no
// part of the contract uses, is kept as text.
func storable(v any) any {
	switch v := v.(type) {
	case nil, bool, string, int8, int16, int32, int64, int, uint8, uint16, uint32, float32, float64, time.Time, []byte:
		return v
	case uint64:
		if v <= math.MaxInt64 {
			return v
		}
	}
	return fmt.Sprint(v)
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
	BodyBytes   int               `json:"body_bytes"`
}

// Parked calls each for the parked messages, in order of aggregate and sequence.
func (s *Store) Parked(ctx context.Context, each func(ParkedMessage) error) error {
	cursor, err := s.db.Collection(projection.ParkedMessages).Find(ctx, bson.D{},
		options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
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
			AggregateID: p.Key.AggregateID, Sequence: p.Key.Sequence, EventID: p.EventID, EventType: p.EventType,
			Position: p.Position, Version: p.Version, Failed: p.Failed, Reason: p.Reason, ParkedAt: p.ParkedAt,
			BodyBytes: len(p.Message.Body),
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
