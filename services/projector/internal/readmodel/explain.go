package readmodel

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/projection"
)

// Explain shows how a write is sent: collection, filter, and update or replacement;
// of a document that many aggregates change also the position in the ledger that
// guards it.
func Explain(w *projection.Write, now time.Time) bson.D {
	shown := bson.D{{Key: "projection", Value: w.Projection}, {Key: "collection", Value: w.Collection}}
	sent := model(w, now, nil)
	if w.Keyed {
		u := &coalescedWrite{writes: []int{0}}
		sent = u.keyedModel([]projection.Write{*w}, now)
		shown = append(shown, bson.E{Key: "guard", Value: bson.D{
			{Key: "collection", Value: projection.Positions},
			{Key: "filter", Value: positionKeyOf(w).guard(w.Event, nil)},
		}})
	}
	switch m := sent.(type) {
	case *mongo.UpdateOneModel:
		shown = append(shown, bson.E{Key: "filter", Value: m.Filter}, bson.E{Key: "update", Value: m.Update})
	case *mongo.ReplaceOneModel:
		shown = append(shown, bson.E{Key: "filter", Value: m.Filter}, bson.E{Key: "replacement", Value: m.Replacement})
	}
	return append(shown, bson.E{Key: "upsert", Value: !w.Kept})
}
