package witness

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/source"
)

// Collections of what is set aside.
const (
	parkedChanges    = "parked_changes"
	parkedMessages   = "parked_messages"
	haltedAggregates = "halted_aggregates"
	skippedEvents    = "skipped_events"
)

// Aside is an event that the relay has set aside, with its reason.
type Aside struct {
	// ID is the event's, as its document has it.
	ID string
	// Unsent says that a publisher has parked the change, and not a projector the
	// message.
	Unsent bool
	// Behind says that nothing is wrong with the event but that one before it failed.
	Behind bool
	Reason string
}

// Asides returns what is set aside, that of each aggregate in its order.
func (w *Witness) Asides(ctx context.Context) ([]Aside, error) {
	var changes []struct {
		Key    bson.Raw `bson:"documentKey"`
		Reason string   `bson:"reason"`
	}
	byPosition := options.Find().SetSort(bson.D{{Key: "position", Value: 1}})
	cursor, err := w.State().Collection(parkedChanges).Find(ctx, bson.D{}, byPosition)
	if err == nil {
		err = cursor.All(ctx, &changes)
	}
	if err != nil {
		return nil, fmt.Errorf("read the parked changes: %w", err)
	}
	var messages []struct {
		Key struct {
			Aggregate string `bson:"aggregateId"`
		} `bson:"_id"`
		Version int64  `bson:"aggregateVersion"`
		Failed  bool   `bson:"failed"`
		Reason  string `bson:"reason"`
	}
	byKey := options.Find().SetSort(bson.D{{Key: "_id", Value: 1}})
	cursor, err = w.ReadModel().Collection(parkedMessages).Find(ctx, bson.D{}, byKey)
	if err == nil {
		err = cursor.All(ctx, &messages)
	}
	if err != nil {
		return nil, fmt.Errorf("read the parked messages: %w", err)
	}
	var asides []Aside
	for _, c := range changes {
		id, _ := c.Key.Lookup("_id").StringValueOK()
		asides = append(asides, Aside{ID: id, Unsent: true, Reason: c.Reason})
	}
	for _, m := range messages {
		asides = append(asides, Aside{ID: orders.Event{Aggregate: m.Key.Aggregate, Version: m.Version}.ID(), Behind: !m.Failed, Reason: m.Reason})
	}
	return asides, nil
}

// AwaitSettled is AwaitDrain for events of which some may be set aside: those have
// arrived where they are.
func (w *Witness) AwaitSettled(ctx context.Context) error {
	return w.awaitStill(ctx, "all to be applied or set aside", quiet, func(m motion) bool {
		unsent, err := w.State().Collection(parkedChanges).CountDocuments(ctx, bson.D{})
		if err != nil {
			return false
		}
		parked, err := w.ReadModel().Collection(parkedMessages).CountDocuments(ctx, bson.D{})
		return err == nil && m.seen+int(unsent) >= m.written && m.applied+int(unsent+parked) >= m.written
	})
}

// Excuse has Judge take events that are set aside for events that need not have come
// to the read model, nor to the topic where they are unsent. They are for whoever asks
// to tell of.
func (w *Witness) Excuse(asides []Aside) {
	excused := make(map[string]pardon, len(asides))
	for _, a := range asides {
		excused[a.ID] = without
		if a.Unsent {
			excused[a.ID] = unsent
		}
	}
	w.forgiven = func(e source.Stored) pardon { return excused[e.ID()] }
}
