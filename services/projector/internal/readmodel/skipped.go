package readmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
)

// Skipped keeps the records of events that projections do not apply, by their policies. A
// record is made by the write that moves the projection's position over the event, and
// ended by the one that applies the event after all, or removed where the document is built
// anew, or an operator gives it up.
//
// One that is ended stays for a time, since a projector's role need not have the right to
// remove anything. Nothing finds it, but the index that removes it.
type Skipped struct {
	*database
}

// skippedKey is the key of skipped_events. Its order is that of an aggregate's events.
type skippedKey struct {
	AggregateID string            `bson:"aggregateId"`
	Sequence    contract.Sequence `bson:"sequence"`
	EventID     string            `bson:"eventId"`
	Projection  string            `bson:"projection"`
}

// skippedEvent is a document of skipped_events.
type skippedEvent struct {
	Key       skippedKey        `bson:"_id"`
	EventType string            `bson:"eventType"`
	EventTime *time.Time        `bson:"eventTime,omitempty"`
	Position  contract.Position `bson:"position"`
	Version   *int64            `bson:"aggregateVersion,omitempty"`
	Class     projection.Class  `bson:"class"`
	Action    projection.Action `bson:"action"`
	Reason    string            `bson:"reason"`
	SkippedAt time.Time         `bson:"skippedAt"`
	// CountedAt is when the event was first skipped, while the record counts for the brake,
	// and absent afterwards. The brake reads it each second, by an index of its own.
	CountedAt    *time.Time `bson:"countedAt,omitempty"`
	Topic        string     `bson:"topic"`
	Subscription string     `bson:"subscription"`
	// Message is nil where it is too large to be kept; then it is in the dead letters.
	Message *parkedContent `bson:"message"`
}

// ended is when the event of a record was applied after all; absent while it is lacking.
const ended = "endedAt"

// standing finds the records that are not ended.
var standing = bson.E{Key: ended, Value: nil}

// end ends a record.
func end(now time.Time) bson.D {
	return bson.D{
		{Key: "$set", Value: bson.D{{Key: ended, Value: now}}},
		{Key: "$unset", Value: bson.D{{Key: "countedAt", Value: ""}, {Key: "message", Value: ""}}},
	}
}

func skippedKeyOf(w *projection.Write) skippedKey {
	return skippedKey{w.Event.AggregateID, w.Event.Sequence, w.Event.ID, w.Projection}
}

func skippedOf(w *projection.Write, feed Feed, now time.Time) *skippedEvent {
	e, s := w.Event, w.Skipped
	record := &skippedEvent{
		Key:       skippedKeyOf(w),
		EventType: e.Type, Position: e.Position, Class: s.Class, Action: s.Action, Reason: s.Reason, SkippedAt: now, CountedAt: &now,
		Topic: feed.Topic, Subscription: feed.Subscription,
	}
	if !e.Time.IsZero() {
		record.EventTime = &e.Time
	}
	if e.Version.Known {
		record.Version = &e.Version.Number
	}
	if s.Message != nil {
		content := contentOf(s.Message)
		record.Message = &content
	}
	return record
}

// SkippedEvent is what an operator is shown of a record.
type SkippedEvent struct {
	Projection  string            `json:"projection"`
	AggregateID string            `json:"aggregate"`
	Sequence    contract.Sequence `json:"sequence"`
	EventID     string            `json:"event_id"`
	EventType   string            `json:"event_type"`
	Version     *int64            `json:"version,omitempty"`
	Class       projection.Class  `json:"class"`
	Action      projection.Action `json:"action"`
	Reason      string            `json:"reason"`
	SkippedAt   time.Time         `json:"skipped_at"`
	// Counted tells that it counts for the brake.
	Counted bool `json:"-"`

	// Message is the whole message, nil where it is not kept; it is not shown in a list.
	Message *contract.Message `json:"-"`
}

// Each calls each for the records of one aggregate, or of all where aggregate is "",
// ordered by aggregate and sequence, and with the messages if messages is true.
func (s *Skipped) Each(ctx context.Context, aggregate string, messages bool, each func(SkippedEvent) error) error {
	// A message may be large, so few are in memory at once.
	find := options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetBatchSize(listedAtOnce)
	if !messages {
		find.SetProjection(bson.D{{Key: "message", Value: 0}}).SetBatchSize(lacksAtOnce)
	}
	cursor, err := s.own(projection.SkippedEvents).Find(ctx, append(ofAggregate(aggregate), standing), find)
	if err != nil {
		return fmt.Errorf("list skipped events: %w", err)
	}
	defer func() { _ = cursor.Close(context.WithoutCancel(ctx)) }()
	for cursor.Next(ctx) {
		var found skippedEvent
		if err := cursor.Decode(&found); err != nil {
			return fmt.Errorf("read a skipped event: %w", err)
		}
		if err := each(found.shown()); err != nil {
			return err
		}
	}
	if err := cursor.Err(); err != nil {
		return fmt.Errorf("list skipped events: %w", err)
	}
	return nil
}

func (r *skippedEvent) shown() SkippedEvent {
	shown := SkippedEvent{
		Projection: r.Key.Projection, AggregateID: r.Key.AggregateID, Sequence: r.Key.Sequence, EventID: r.Key.EventID,
		EventType: r.EventType, Version: r.Version, Class: r.Class, Action: r.Action, Reason: r.Reason, SkippedAt: r.SkippedAt, Counted: r.CountedAt != nil,
	}
	if r.Message != nil {
		message := r.Message.message()
		shown.Message = &message
	}
	return shown
}

// Count is how many records the group has.
func (s *Skipped) Count(ctx context.Context) (int64, error) {
	n, err := s.own(projection.SkippedEvents).CountDocuments(ctx, bson.D{standing})
	if err != nil {
		return 0, fmt.Errorf("count skipped events: %w", err)
	}
	return n, nil
}

// Forget removes a record, and tells whether it was there.
func (s *Skipped) Forget(ctx context.Context, e *SkippedEvent) (bool, error) {
	key := skippedKey{e.AggregateID, e.Sequence, e.EventID, e.Projection}
	result, err := s.own(projection.SkippedEvents).DeleteOne(ctx, bson.D{{Key: "_id", Value: key}})
	if err != nil {
		return false, fmt.Errorf("remove from %q: %w", projection.SkippedEvents, err)
	}
	return result.DeletedCount > 0, nil
}

// ForgetOf removes the records of a projection whose documents are gone. It goes through
// those of all projections, since no index finds its own.
func (s *Skipped) ForgetOf(ctx context.Context, name string) error {
	records := s.own(projection.SkippedEvents)
	err := s.pages(ctx, records.Name(), bson.D{}, func(page bson.D) (enough bool, err error) {
		_, err = records.DeleteMany(ctx, append(page, bson.E{Key: "_id.projection", Value: name}))
		return false, err
	})
	if err != nil {
		return fmt.Errorf("remove from %q: %w", projection.SkippedEvents, err)
	}
	return nil
}

// LastSkipped implements delivery.Records.
func (s *Skipped) LastSkipped(ctx context.Context, aggregate string) (contract.Sequence, error) {
	var last skippedEvent
	err := s.own(projection.SkippedEvents).FindOne(ctx, append(ofAggregate(aggregate), standing),
		options.FindOne().SetSort(bson.D{{Key: "_id", Value: -1}}).SetProjection(bson.D{{Key: "_id", Value: 1}})).Decode(&last)
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return "", fmt.Errorf("read %q: %w", projection.SkippedEvents, err)
	}
	return last.Key.Sequence, nil
}

// ofSkipped finds the records of an event.
func ofSkipped(e *contract.Event) bson.D {
	from := skippedKey{AggregateID: e.AggregateID, Sequence: e.Sequence, EventID: e.ID}
	to := bson.D{{Key: "aggregateId", Value: e.AggregateID}, {Key: "sequence", Value: e.Sequence}, {Key: "eventId", Value: e.ID}, {Key: "projection", Value: bson.MaxKey{}}}
	return bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: from}, {Key: "$lt", Value: to}}}, standing}
}

// SkippedBy implements delivery.Records.
func (s *Skipped) SkippedBy(ctx context.Context, e *contract.Event) (projections []string, err error) {
	cursor, err := s.own(projection.SkippedEvents).Find(ctx, ofSkipped(e),
		options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetProjection(bson.D{{Key: "_id", Value: 1}}))
	var found []skippedEvent
	if err == nil {
		err = cursor.All(ctx, &found)
	}
	if err != nil {
		return nil, fmt.Errorf("look up which projections have skipped event %q of aggregate %q: %w", e.ID, e.AggregateID, err)
	}
	projections = []string{}
	for i := range found {
		projections = append(projections, found[i].Key.Projection)
	}
	return projections, nil
}

// applied ends the records of a dead-lettered event that projections have by now.
// Records of skips stay: the position may be past the event because of the skip.
func (s *Skipped) applied(ctx context.Context, e *contract.Event, names []string) error {
	keys := make(bson.A, len(names))
	for i, name := range names {
		keys[i] = skippedKey{e.AggregateID, e.Sequence, e.ID, name}
	}
	if _, err := s.own(projection.SkippedEvents).UpdateMany(ctx, bson.D{
		{Key: "_id", Value: bson.D{{Key: "$in", Value: keys}}}, {Key: "action", Value: projection.DeadLetter}, standing,
	}, end(time.Now())); err != nil {
		return fmt.Errorf("write to %q: %w", projection.SkippedEvents, err)
	}
	return nil
}

// countingSkips finds the records that count for the brake, by an index.
var countingSkips = bson.D{{Key: "countedAt", Value: bson.D{{Key: "$gt", Value: time.Time{}}}}}

// createIndex creates that index.
func (s *Skipped) createIndex(ctx context.Context) error {
	_, err := s.own(projection.SkippedEvents).Indexes().CreateOne(ctx, mongo.IndexModel{
		Keys: bson.D{{Key: "countedAt", Value: 1}}, Options: options.Index().SetName("counted").SetSparse(true),
	})
	if err != nil {
		return fmt.Errorf("create index %q of %q: %w", "counted", projection.SkippedEvents, err)
	}
	return nil
}

// Accept makes the existing records no longer count for the brake, and returns how many
// they are.
func (s *Skipped) Accept(ctx context.Context) (int64, error) {
	result, err := s.own(projection.SkippedEvents).UpdateMany(ctx, countingSkips, bson.D{{Key: "$unset", Value: bson.D{{Key: "countedAt", Value: ""}}}})
	if err != nil {
		return 0, fmt.Errorf("accept skipped events: %w", err)
	}
	return result.ModifiedCount, nil
}

// Counting is how many records count for the brake.
func (s *Skipped) Counting(ctx context.Context) (int64, error) {
	n, err := s.own(projection.SkippedEvents).CountDocuments(ctx, countingSkips)
	if err != nil {
		return 0, fmt.Errorf("count skipped events: %w", err)
	}
	return n, nil
}

// latest returns when the events that count for the brake were skipped, the latest first.
// An event counts once, however many projections have skipped it.
func (s *Skipped) latest(ctx context.Context, limit int) (times []time.Time, err error) {
	cursor, err := s.own(projection.SkippedEvents).Find(ctx, countingSkips,
		options.Find().SetSort(bson.D{{Key: "countedAt", Value: -1}}).SetProjection(bson.D{{Key: "countedAt", Value: 1}}))
	if err != nil {
		return nil, fmt.Errorf("count skipped events: %w", err)
	}
	defer func() { _ = cursor.Close(context.WithoutCancel(ctx)) }()
	counted := map[skippedKey]bool{}
	for len(times) < limit && cursor.Next(ctx) {
		var found skippedEvent
		if err := cursor.Decode(&found); err != nil {
			return nil, fmt.Errorf("read a skipped event: %w", err)
		}
		found.Key.Projection = ""
		if !counted[found.Key] {
			counted[found.Key] = true
			times = append(times, *found.CountedAt)
		}
	}
	if err := cursor.Err(); err != nil {
		return nil, fmt.Errorf("count skipped events: %w", err)
	}
	return times, nil
}

// split returns a document's key and its other fields.
func split(document any) (id any, fields bson.D, err error) {
	encoded, err := bson.Marshal(document)
	if err != nil {
		return nil, nil, mongo.MarshalError{Value: document, Err: err}
	}
	elements, err := bson.Raw(encoded).Elements()
	if err != nil {
		return nil, nil, mongo.MarshalError{Value: document, Err: err}
	}
	fields = make(bson.D, 0, len(elements))
	for _, element := range elements[1:] {
		fields = append(fields, bson.E{Key: element.Key(), Value: element.Value()})
	}
	return elements[0].Value(), fields, nil
}

// byTime sorts times of several kinds, the latest first, up to limit.
func byTime(limit int, times ...time.Time) []time.Time {
	slices.SortFunc(times, func(a, b time.Time) int { return cmp.Compare(b.UnixNano(), a.UnixNano()) })
	return times[:min(limit, len(times))]
}
