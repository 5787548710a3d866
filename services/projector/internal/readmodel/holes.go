package readmodel

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
)

// noteHoles notes of writes which of them have versions that are filled begin or go on behind a
// hole: an event that was resent, and is not there. Nobody fills it later.
func (s *Writes) noteHoles(ctx context.Context, writes []projection.Write) error {
	noted := map[lackKey]contract.Sequence{}
	for i := range writes {
		w := &writes[i]
		key := lackOf(w)
		if w.Lacks <= noted[key] {
			continue
		}
		note := bson.D{
			{Key: "$min", Value: bson.D{{Key: "missing", Value: w.Lacks}}},
			{Key: "$max", Value: bson.D{{Key: "latest", Value: w.Lacks}}},
			{Key: "$set", Value: bson.D{{Key: "within", Value: true}, {Key: "collection", Value: ownCollection(w)}, {Key: "resend", Value: w.Event.Resend.ID}, {Key: "at", Value: time.Now()}}},
		}
		if _, err := s.own(projection.Positions).UpdateOne(ctx, bson.D{{Key: "_id", Value: key}}, note, options.UpdateOne().SetUpsert(true)); err != nil {
			return fmt.Errorf("note in %q that aggregate %q lacks what is before event %q: %w", projection.Positions, key.Aggregate, w.Event.ID, err)
		}
		noted[key] = w.Lacks
	}
	return nil
}
