package readmodel

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/projection"
)

// Explain shows how a write is sent: collection, filter, and update or replacement.
func Explain(w *projection.Write, now time.Time) bson.D {
	shown := bson.D{{Key: "projection", Value: w.Projection}, {Key: "collection", Value: w.Collection}}
	switch m := model(w, now).(type) {
	case *mongo.UpdateOneModel:
		shown = append(shown, bson.E{Key: "filter", Value: m.Filter}, bson.E{Key: "update", Value: m.Update})
	case *mongo.ReplaceOneModel:
		shown = append(shown, bson.E{Key: "filter", Value: m.Filter}, bson.E{Key: "replacement", Value: m.Replacement})
	}
	return append(shown, bson.E{Key: "upsert", Value: true})
}
