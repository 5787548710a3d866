package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// skips tells whether any of the writes skips its event.
func skips(writes []projection.Write) bool {
	return slices.ContainsFunc(writes, func(w projection.Write) bool { return w.Skipped != nil })
}

// mends tells whether any of the writes is of an event that may have been skipped.
func mends(writes []projection.Write) bool {
	return slices.ContainsFunc(writes, func(w projection.Write) bool { return w.Mends })
}

// mend ends the records of events that writes apply, in their transaction: what was
// applied before is none of it. Nor is a position of the ledger that moves over an event
// which its document has passed.
func (p *transaction) mend(ctx context.Context, places []int, now time.Time) error {
	keys := bson.A{}
	for _, place := range places {
		if w := &p.writes[place]; w.Mends && !p.passed(w) {
			keys = append(keys, skippedKeyOf(w))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	if _, err := p.store.own(projection.SkippedEvents).UpdateMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: keys}}}, standing}, end(now)); err != nil {
		return fmt.Errorf("write to %q: %w", projection.SkippedEvents, err)
	}
	return nil
}

// passed tells whether the projection's own document was beyond a write's event.
func (p *transaction) passed(w *projection.Write) bool {
	for i := range p.writes {
		of := &p.writes[i]
		if of.Event == w.Event && of.Projection == w.Projection && of.Changes() && p.outcomes[i] == delivery.Repeated {
			return true
		}
	}
	return false
}

// know finds the skipped events of writes that were dealt with before: the position that
// guards the projection's documents is not below them. Where there is no record they were
// applied: a process may have died of one that it had applied.
func (p *transaction) know(ctx context.Context, places []int) error {
	p.known = map[int]delivery.Outcome{}
	for _, place := range places {
		w := &p.writes[place]
		if w.Skipped == nil {
			continue
		}
		collection, key, path := w.Collection, w.ID, []string{bookkeeping}
		if collection == "" || w.Keyed {
			collection, key, path = projection.Positions, positionKeyOf(w), nil
		}
		document, err := p.store.db.Collection(collection).FindOne(ctx, bson.D{{Key: "_id", Value: key}}).Raw()
		if errors.Is(err, mongo.ErrNoDocuments) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look up a position in %q: %w", collection, err)
		}
		at, found := placeOf(document, path...)
		before := at.First != "" && w.Event.Version.Known && w.Event.Sequence < at.First
		if !found || at.Sequence < w.Event.Sequence || before || conflicts(w.Event, at) || !p.store.sources.fits(w.Event, at) {
			continue
		}
		unrecorded, err := p.store.unrecorded(ctx, w)
		if err != nil {
			return err
		}
		if p.known[place] = delivery.Recorded; unrecorded {
			p.known[place] = delivery.Repeated
		}
	}
	return nil
}

// record records the skipped events of writes, in their transaction. One that is recorded
// stays as it is, and is a repeat; so is one that was dealt with before.
func (p *transaction) record(ctx context.Context, places []int, now time.Time) error {
	for _, place := range places {
		w := &p.writes[place]
		if w.Skipped == nil || p.known[place] != delivery.Unknown {
			continue
		}
		record := skippedOf(w, p.store.feed, now)
		if w.Event.Resend.ID != "" {
			if err := p.store.countAsBefore(ctx, w.Event, record); err != nil {
				return err
			}
		}
		id, fields, err := split(record)
		if err != nil {
			return err
		}
		inserted, err := putOnce(ctx, p.store.own(projection.SkippedEvents), id, bson.D{{Key: "$setOnInsert", Value: fields}})
		if err != nil {
			return err
		}
		if !inserted {
			if inserted, err = p.store.again(ctx, id, fields); err != nil {
				return err
			}
		}
		if !inserted {
			p.known[place] = delivery.Recorded
		}
		if !inserted && w.Skipped.Action == projection.Skip {
			if err := p.store.leftOut(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// countAsBefore has the record of an event that is resent count for the brake as that of
// another projection does, if there is one: a version that is filled skips again what the
// live one has skipped, of a long time perhaps all at once.
func (s *Writes) countAsBefore(ctx context.Context, e *contract.Event, record *skippedEvent) error {
	var before skippedEvent
	err := s.own(projection.SkippedEvents).FindOne(ctx, ofSkipped(e), options.FindOne().SetProjection(bson.D{{Key: "countedAt", Value: 1}})).Decode(&before)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look up whether event %q of aggregate %q was skipped: %w", e.ID, e.AggregateID, err)
	}
	record.CountedAt = before.CountedAt
	return nil
}

// again has a record that is ended stand again, with new fields, and tells whether it was:
// the document was lost, and lacks the event once more.
func (s *Writes) again(ctx context.Context, id any, fields bson.D) (bool, error) {
	result, err := s.own(projection.SkippedEvents).UpdateOne(ctx, bson.D{{Key: "_id", Value: id}, {Key: ended, Value: bson.D{{Key: "$ne", Value: nil}}}},
		bson.D{{Key: "$set", Value: fields}, {Key: "$unset", Value: bson.D{{Key: ended, Value: ""}}}})
	if err != nil {
		return false, fmt.Errorf("write to %q: %w", projection.SkippedEvents, err)
	}
	return result.ModifiedCount > 0, nil
}

// leftOut has a record say that its event is left out, where it said that it was
// dead-lettered: the position is over the event now, so what is put back is a repeat.
func (s *Writes) leftOut(ctx context.Context, id any) error {
	_, err := s.own(projection.SkippedEvents).UpdateOne(ctx, bson.D{{Key: "_id", Value: id}, {Key: "action", Value: projection.DeadLetter}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "action", Value: projection.Skip}}}})
	if err != nil {
		return fmt.Errorf("write to %q: %w", projection.SkippedEvents, err)
	}
	return nil
}
