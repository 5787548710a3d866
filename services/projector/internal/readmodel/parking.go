package readmodel

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/reply"
)

// parkedKey is the key of parked_messages. Its order is the order in which an
// aggregate's messages are redriven.
type parkedKey struct {
	AggregateID string            `bson:"aggregateId"`
	Sequence    contract.Sequence `bson:"sequence"`
	EventID     string            `bson:"eventId"`
}

// parkedMessage is a document of parked_messages: the whole message, and what
// it says of itself.
type parkedMessage struct {
	Key       parkedKey         `bson:"_id"`
	EventType string            `bson:"eventType"`
	EventTime *time.Time        `bson:"eventTime,omitempty"`
	Position  contract.Position `bson:"position"`
	Version   *int64            `bson:"aggregateVersion,omitempty"`
	Failed    bool              `bson:"failed"`
	Reason    string            `bson:"reason"`
	Returned  bool              `bson:"returned,omitempty"`
	// Behind is that of delivery.ParkedMessage.
	Behind bool `bson:"behind,omitempty"`
	// Topic is "" where an older release has parked it.
	Topic          string    `bson:"topic"`
	Subscription   string    `bson:"subscription"`
	SequenceNumber int64     `bson:"sequenceNumber"`
	EnqueuedAt     time.Time `bson:"enqueuedAt"`
	ParkedAt       time.Time `bson:"parkedAt"`
	// Weight is about how much memory the message takes, in bytes.
	Weight int64 `bson:"weight"`
	// FollowedBy are the projections that followed the event when it was parked;
	// null where that is not known.
	FollowedBy []string      `bson:"followedBy"`
	Message    parkedContent `bson:"message"`
}

// parkedContent is a contract.Message.
type parkedContent struct {
	ID              string `bson:"id"`
	SessionID       string `bson:"sessionId"`
	PartitionKey    string `bson:"partitionKey"`
	Subject         string `bson:"subject"`
	ContentType     string `bson:"contentType"`
	ContentEncoding string `bson:"contentEncoding"`
	// Properties are those whose names are plain, Others those of any other name,
	// which a server may refuse as a field's.
	Properties bson.D           `bson:"properties"`
	Others     []parkedProperty `bson:"otherProperties,omitempty"`
	Body       []byte           `bson:"body"`
}

type parkedProperty struct {
	Name  string `bson:"name"`
	Value any    `bson:"value"`
}

// plainName is a property's name that every server takes as a field's.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_:-]+$`)

// Parking halts aggregates and keeps their messages aside, in parked_messages.
type Parking struct {
	*database
	halts *Halts
}

var _ delivery.Parking = (*Parking)(nil)

// Halt implements delivery.Parking.
func (s *Parking) Halt(ctx context.Context, h delivery.Halt) (delivery.HaltID, error) {
	e := &h.Event
	mark := projection.Halted{Since: time.Now(), Reason: h.Reason, EventID: e.ID}
	mine := delivery.HaltID(rand.Text())
	update := bson.D{{Key: "$setOnInsert", Value: bson.D{
		{Key: "halt", Value: mine},
		{Key: "reason", Value: h.Reason},
		{Key: "sequence", Value: e.Sequence},
		{Key: "position", Value: e.Position},
		{Key: "eventId", Value: e.ID},
		{Key: "eventType", Value: e.Type},
		{Key: "haltedAt", Value: mark.Since},
	}}}
	if h.Projection != "" {
		update[0].Value = append(update[0].Value.(bson.D), bson.E{Key: "projection", Value: h.Projection})
	}
	if h.Uncounted {
		update[0].Value = append(update[0].Value.(bson.D), bson.E{Key: "uncounted", Value: true})
	}
	var stored haltedAggregate
	halt := func(marking bool) error {
		return s.together(ctx, func(ctx context.Context) error {
			err := s.own(projection.HaltedAggregates).FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: e.AggregateID}}, update,
				options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)).Decode(&stored)
			if err != nil {
				return fmt.Errorf("write to %q: %w", projection.HaltedAggregates, err)
			}
			if stored.Halt != mine {
				return nil
			}
			if err := s.halts.noteHalt(ctx, &stored); err != nil {
				return err
			}
			if err := s.recount(ctx, e.AggregateID, mine, h.Deleted); err != nil || !marking {
				return err
			}
			return s.halts.mark(ctx, e.AggregateID, &mark)
		})
	}
	err := halt(true)
	if err != nil && !reply.IsUnreachable(err) {
		// What the server refuses to store, it may refuse to mark. The halt counts.
		err = halt(false)
	}
	return stored.id(), err
}

// recount counts at a new halt what is parked already, where one was lost: so that
// what is lost after that is missed. The messages are changed for it, which keeps a
// redrive from taking one away meanwhile. Where all was deleted that was parked under
// the halt, one at least is missing. Behind which event a message came is not known any
// more: later ones may have been applied while there was no halt.
func (s *Parking) recount(ctx context.Context, aggregate string, halt delivery.HaltID, deleted bool) error {
	result, err := s.own(projection.ParkedMessages).UpdateMany(ctx, ofAggregate(aggregate), bson.D{
		{Key: "$set", Value: bson.D{{Key: "halt", Value: halt}}},
		{Key: "$unset", Value: bson.D{{Key: "behind", Value: ""}}},
	})
	if err != nil {
		return fmt.Errorf("write to %q: %w", projection.ParkedMessages, err)
	}
	kept := result.MatchedCount
	if deleted {
		kept = max(kept, 1)
	}
	if kept == 0 {
		return nil
	}
	_, err = s.own(projection.HaltedAggregates).UpdateOne(ctx, bson.D{{Key: "_id", Value: aggregate}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "parked", Value: kept}, {Key: "kept", Value: kept}}}})
	if err != nil {
		return fmt.Errorf("write to %q: %w", projection.HaltedAggregates, err)
	}
	return nil
}

// Park implements delivery.Parking.
func (s *Parking) Park(ctx context.Context, messages []delivery.Parked) error {
	for i := range messages {
		err := s.park(ctx, &messages[i])
		if reply.IsAboutData(err) {
			return &delivery.RejectedError{Index: i, Reason: reply.WithoutData(err).Error()}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// park keeps one message, and counts it at its halt: in one transaction, so
// that nothing is parked without a halt. Lift deletes the halt in another, and
// both change that one document, so the later of the two starts over.
func (s *Parking) park(ctx context.Context, p *delivery.Parked) error {
	document := s.parked(p)
	return s.together(ctx, func(ctx context.Context) error {
		var halt haltedAggregate
		err := s.own(projection.HaltedAggregates).FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: p.Event.AggregateID}},
			bson.D{{Key: "$inc", Value: bson.D{{Key: "parked", Value: int64(1)}, {Key: "kept", Value: int64(1)}}}},
			options.FindOneAndUpdate().SetProjection(bson.D{{Key: "sequence", Value: 1}, {Key: "taken", Value: 1}})).Decode(&halt)
		if errors.Is(err, mongo.ErrNoDocuments) {
			return delivery.ErrLifted
		}
		if err != nil {
			return fmt.Errorf("write to %q: %w", projection.HaltedAggregates, err)
		}
		if discarded, err := s.Discarded(ctx, &p.Event); err != nil || discarded {
			return cmp.Or(err, delivery.ErrDiscarded)
		}
		document.Behind = p.Event.Sequence < halt.Sequence || p.Event.Sequence <= halt.Taken
		id, fields, err := split(document)
		if err != nil {
			return err
		}
		inserted, err := putOnce(ctx, s.own(projection.ParkedMessages), id, bson.D{{Key: "$setOnInsert", Value: fields}})
		if err != nil || inserted {
			return err
		}
		if err := s.halts.uncount(ctx, p.Event.AggregateID, ""); err != nil || isShell(&p.Message.Message) {
			return err
		}
		return s.fill(ctx, id, fields)
	})
}

// isShell tells a message that could not be kept, and has only its place kept:
// without its properties no message has one.
func isShell(m *contract.Message) bool { return len(m.Body) == 0 && len(m.Properties) == 0 }

// fill gives a shell its message. Anything else is left as it is, and so is
// whether the event failed.
func (s *Parking) fill(ctx context.Context, id any, fields bson.D) error {
	shell := bson.D{
		{Key: "_id", Value: id},
		{Key: "message.body", Value: nil},
		{Key: "message.properties", Value: bson.D{}},
		{Key: "message.otherProperties", Value: nil},
	}
	fields = slices.DeleteFunc(slices.Clone(fields), func(e bson.E) bool { return e.Key == "failed" })
	if _, err := s.own(projection.ParkedMessages).UpdateOne(ctx, shell, bson.D{{Key: "$set", Value: fields}}); err != nil {
		return fmt.Errorf("write to %q: %w", projection.ParkedMessages, err)
	}
	return nil
}

// putOnce inserts a document unless there is one with its key, and tells
// whether it did.
func putOnce(ctx context.Context, collection *mongo.Collection, id any, setOnInsert bson.D) (inserted bool, err error) {
	result, err := collection.UpdateOne(ctx, bson.D{{Key: "_id", Value: id}}, setOnInsert,
		options.UpdateOne().SetUpsert(true))
	// Another process has inserted it between the server's search and its insert.
	if mongo.IsDuplicateKeyError(err) {
		return false, fmt.Errorf("write to %q: another write got in between: %w", collection.Name(), err)
	}
	if err != nil {
		return false, fmt.Errorf("write to %q: %w", collection.Name(), err)
	}
	return result.UpsertedCount > 0, nil
}

func (s *Parking) parked(p *delivery.Parked) *parkedMessage {
	e, m := &p.Event, &p.Message
	document := &parkedMessage{
		Key:            parkedKey{e.AggregateID, e.Sequence, e.ID},
		EventType:      e.Type,
		Position:       e.Position,
		Failed:         p.Failed,
		Reason:         p.Reason,
		Returned:       p.Returned,
		Topic:          s.feed.Topic,
		Subscription:   s.feed.Subscription,
		SequenceNumber: m.SequenceNumber,
		EnqueuedAt:     m.EnqueuedAt,
		ParkedAt:       time.Now(),
		Weight:         m.Weight(),
		FollowedBy:     s.followers(e.Type),
		Message:        contentOf(&m.Message),
	}
	if !e.Time.IsZero() {
		document.EventTime = &e.Time
	}
	if e.Version.Known {
		document.Version = &e.Version.Number
	}
	return document
}

// contentOf is a message as it is kept.
func contentOf(m *contract.Message) parkedContent {
	content := parkedContent{
		ID: m.ID, SessionID: m.SessionID, PartitionKey: m.PartitionKey, Subject: m.Subject,
		ContentType: m.ContentType, ContentEncoding: m.ContentEncoding, Body: m.Body,
		Properties: bson.D{},
	}
	for _, name := range slices.Sorted(maps.Keys(m.Properties)) {
		value := storable(m.Properties[name])
		if plainName.MatchString(name) {
			content.Properties = append(content.Properties, bson.E{Key: name, Value: value})
			continue
		}
		content.Others = append(content.Others, parkedProperty{name, value})
	}
	return content
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
