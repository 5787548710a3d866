package readmodel

import (
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
)

// bookkeeping is the field that holds a read document's position.
const bookkeeping = "_relay"

// model is the guarded upsert for a write.
func model(w *projection.Write, now time.Time, of *sources) mongo.WriteModel {
	if w.Kept {
		return moving(w, w.Event.Sequence, now, of)
	}
	filter := guard(w, w.Event.Sequence, of)
	relay := position(w, now)
	if w.Delete {
		relay = append(relay, bson.E{Key: "deletedAt", Value: now}, bson.E{Key: "operation", Value: w.Event.Operation})
		return mongo.NewReplaceOneModel().SetFilter(filter).SetUpsert(true).
			SetReplacement(bson.D{{Key: bookkeeping, Value: relay}})
	}
	// The position is set as a whole, which also ends a tombstone.
	return mongo.NewUpdateOneModel().SetFilter(filter).SetUpsert(true).
		SetUpdate(withSet(w.Update, bson.E{Key: bookkeeping, Value: relay}))
}

// moving moves the position alone, of a document that is there and not deleted.
func moving(w *projection.Write, below contract.Sequence, now time.Time, of *sources) mongo.WriteModel {
	return mongo.NewUpdateOneModel().
		SetFilter(append(guard(w, below, of), bson.E{Key: bookkeeping + ".deletedAt", Value: nil})).
		SetUpdate(withSet(nil, bson.E{Key: bookkeeping, Value: position(w, now)}))
}

// guard matches the write's document only over a lower position, of a source that its
// event goes on from. A document without one does not match, for a string is not
// compared with a missing field.
func guard(w *projection.Write, below contract.Sequence, of *sources) bson.D {
	return append(bson.D{
		{Key: "_id", Value: w.ID},
		{Key: bookkeeping + ".sequence", Value: bson.D{{Key: "$lt", Value: below}}},
	}, of.ofSource(bookkeeping+".source", w.Event)...)
}

// position is what a read document says about the last event that changed it.
func position(w *projection.Write, now time.Time) bson.D {
	e := w.Event
	d := bson.D{
		{Key: "sequence", Value: e.Sequence},
		{Key: "position", Value: e.Position},
		{Key: "eventId", Value: e.ID},
		{Key: "eventType", Value: e.Type},
	}
	d = append(d, noted(e)...)
	if !e.Time.IsZero() {
		d = append(d, bson.E{Key: "eventTime", Value: e.Time})
	}
	if e.Version.Known {
		d = append(d, bson.E{Key: "aggregateVersion", Value: e.Version.Number})
	}
	d = append(d, bson.E{Key: "term", Value: e.Term}, bson.E{Key: "updatedAt", Value: now})
	if w.By != "" {
		d = append(d, bson.E{Key: "by", Value: w.By})
	}
	if w.Halted != nil {
		d = append(d, bson.E{Key: "halted", Value: markOf(w.Halted)})
	}
	return d
}

// withSet returns the update with one more field under $set, leaving the given
// one as it is: it may be sent again.
func withSet(update bson.D, e bson.E) bson.D {
	with := make(bson.D, 0, len(update)+1)
	added := false
	for _, operator := range update {
		if fields, ok := operator.Value.(bson.D); ok && operator.Key == "$set" {
			operator.Value = slices.Concat(fields, bson.D{e})
			added = true
		}
		with = append(with, operator)
	}
	if !added {
		with = append(with, bson.E{Key: "$set", Value: bson.D{e}})
	}
	return with
}
