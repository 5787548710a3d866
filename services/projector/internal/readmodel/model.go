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
	return mongo.NewUpdateOneModel().SetFilter(filter).SetUpsert(true).
		SetUpdate(withPosition(w.Update, relay, w.Event))
}

// moving moves the position alone, of a document that is there and not deleted.
func moving(w *projection.Write, below contract.Sequence, now time.Time, of *sources) mongo.WriteModel {
	return mongo.NewUpdateOneModel().
		SetFilter(append(guard(w, below, of), bson.E{Key: bookkeeping + ".deletedAt", Value: nil})).
		SetUpdate(withPosition(nil, position(w, now), nil))
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

// optional are those fields of a position that not every event has, or that a tombstone
// has.
var optional = []string{"eventTime", "aggregateVersion", "by", "halted", "deletedAt", "operation", "aggregateId", "source"}

// withPosition returns the update of a document that is an aggregate's own with the
// position: field by field, since where the document began stays as it is. first is the
// event that it begins with where it is made; nil for an update that makes none.
func withPosition(update, relay bson.D, first *contract.Event) bson.D {
	set, unset := make(bson.D, 0, len(relay)), bson.D{}
	for _, e := range relay {
		set = append(set, bson.E{Key: bookkeeping + "." + e.Key, Value: e.Value})
	}
	for _, name := range optional {
		if !slices.ContainsFunc(relay, func(e bson.E) bool { return e.Key == name }) {
			unset = append(unset, bson.E{Key: bookkeeping + "." + name, Value: ""})
		}
	}
	update = with(with(update, "$set", set...), "$unset", unset...)
	if first != nil {
		update = with(update, "$setOnInsert", beginning(bookkeeping+"."+begun, first)...)
	}
	return update
}

// with returns the update with more fields under an operator, leaving the given one as
// it is: it may be sent again.
func with(update bson.D, operator string, fields ...bson.E) bson.D {
	if len(fields) == 0 {
		return update
	}
	more := make(bson.D, 0, len(update)+1)
	added := false
	for _, o := range update {
		if there, ok := o.Value.(bson.D); ok && o.Key == operator {
			o.Value = slices.Concat(there, bson.D(fields))
			added = true
		}
		more = append(more, o)
	}
	if !added {
		more = append(more, bson.E{Key: operator, Value: bson.D(fields)})
	}
	return more
}
