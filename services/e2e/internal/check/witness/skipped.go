package witness

import (
	"context"
	"fmt"
	"maps"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/orders"
)

// skipped is an event that a projection goes on without.
type skipped struct {
	aggregate string
	version   int64
}

// unaddable says of an event that its price is no number, which orders.yaml adds up.
func unaddable(e orders.Event) bool {
	data, _ := e.Data.(map[string]any)
	_, is := data["price"].(string)
	return is
}

// unlikeSkipped finds events that the projection should have gone on without, and of which
// there is no record, and records of others: each has one, with its whole message.
func (w *Witness) unlikeSkipped(ctx context.Context) (found validate.Findings, err error) {
	var all []struct {
		Key struct {
			Aggregate  string `bson:"aggregateId"`
			Event      string `bson:"eventId"`
			Projection string `bson:"projection"`
		} `bson:"_id"`
		Version int64    `bson:"aggregateVersion"`
		Action  string   `bson:"action"`
		Message bson.Raw `bson:"message"`
	}
	cursor, err := w.ReadModel().Collection(skippedEvents).Find(ctx, lacked)
	if err == nil {
		err = cursor.All(ctx, &all)
	}
	if err != nil {
		return found, fmt.Errorf("read the records of skipped events: %w", err)
	}
	missing := maps.Clone(w.skipped)
	for _, r := range all {
		want, known := missing[r.Key.Event]
		got := skipped{aggregate: r.Key.Aggregate, version: r.Version}
		if !known || want != got || r.Key.Projection != w.projection.Collection || r.Action != w.projection.OnError || r.Message == nil {
			found.Add("%s of %s, version %d: recorded as %s for %s", r.Key.Event, r.Key.Aggregate, r.Version, r.Action, r.Key.Projection)
		}
		delete(missing, r.Key.Event)
	}
	for id, of := range missing {
		found.Add("%s of %s, version %d, has no record", id, of.aggregate, of.version)
	}
	return found, nil
}

// lacked are the records of events that documents lack still.
var lacked = bson.D{{Key: "endedAt", Value: nil}}

// notApplied is why a projection's policy dead-letters a message.
const notApplied = "NotApplied"
