package mongostate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
)

// stopped as a decision is that of an entry for what an operator is waited for.
const stopped = "stop"

// FoundAhead reports whether a leader has found a stream's place in the future, by the
// ledger, and no term was confirmed since, by an operator or by who led from there. A
// place that was past by that leader's own clock is not meant: then its source was
// behind, and may be another cluster's.
func (d *Database) FoundAhead(ctx context.Context, record checkpoint.Record, place checkpoint.Place) (bool, error) {
	entry := Gap{From: string(place.Position), FromTime: place.Time().Time(), Cause: string(changestream.PlaceAhead), Decision: stopped}
	err := d.db.Collection(gaps).FindOne(ctx, bson.D{{Key: "_id", Value: entry.id(record.Stream)}}).Decode(&entry)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look whether the place of stream %q was found in the future: %w", record.Stream, err)
	}
	return entry.Term > record.Confirmed && entry.FromTime.After(entry.At), nil
}

// refuseAhead returns an error where the place of a checkpoint that would be carried
// over is after the source's clock, or was found to be: it would be that of streams of
// which nobody has found it.
func (d *Database) refuseAhead(ctx context.Context, scope Scope, r Repartition) error {
	for _, name := range PartitionNames(scope.Whole, r.From) {
		record, place := scope.Records[name], scope.Checkpoints[name].Place
		record.Stream = name
		ahead, err := d.FoundAhead(ctx, record, place)
		if err != nil {
			return err
		}
		if ahead || !r.Now.IsZero() && r.Now.Before(place.Time()) {
			return fmt.Errorf("the place of checkpoint %q, %s, is in the future, or was when a publisher found it: decide first, "+
				"with PARTITIONS=%d, with publisher checkpoint set PLACE --why TEXT", name, place.Time().Time().Format(time.RFC3339), r.From)
		}
	}
	return nil
}
