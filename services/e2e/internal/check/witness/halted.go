package witness

import (
	"context"
	"fmt"
	"maps"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/source"
)

// ExpectHalted has the witness expect that no projection can apply these events, each the
// only one of its aggregate: all must come to the topic, and be parked, with their
// aggregates halted, and nothing else. It is to be called once they are written, where
// nothing is forgiven.
func (w *Witness) ExpectHalted(events []orders.Event) {
	w.halted = make(map[string]string, len(events))
	for _, e := range events {
		w.halted[e.ID()] = e.Aggregate
	}
	w.forgiven = func(e source.Stored) pardon {
		if _, known := w.halted[e.ID()]; known {
			return without
		}
		return due
	}
}

// ExpectCopied has the witness expect that the relay copies these events, which were there
// before it, and then nothing more.
func (w *Witness) ExpectCopied(events []orders.Event) {
	w.copied = make(map[validate.Event]bool, len(events))
	for _, e := range events {
		w.copied[validate.Event{Aggregate: e.Aggregate, Version: e.Version}] = true
	}
}

// unlikeHalted finds halts, or parked messages, of aggregates that should not have any, and
// aggregates that should.
func (w *Witness) unlikeHalted(ctx context.Context, collection string) (found validate.Findings, err error) {
	var all []struct {
		ID bson.RawValue `bson:"_id"`
	}
	cursor, err := w.ReadModel().Collection(collection).Find(ctx, bson.D{})
	if err == nil {
		err = cursor.All(ctx, &all)
	}
	if err != nil {
		return found, fmt.Errorf("read %s: %w", collection, err)
	}
	missing := make(map[string]bool, len(w.halted))
	for _, aggregate := range w.halted {
		missing[aggregate] = true
	}
	for _, d := range all {
		aggregate, text := d.ID.StringValueOK()
		if key, is := d.ID.DocumentOK(); is && !text {
			aggregate, _ = key.Lookup("aggregateId").StringValueOK()
		}
		if !missing[aggregate] {
			found.Add("%s is in %s", aggregate, collection)
		}
		delete(missing, aggregate)
	}
	for aggregate := range maps.Keys(missing) {
		found.Add("%s is not in %s", aggregate, collection)
	}
	return found, nil
}
