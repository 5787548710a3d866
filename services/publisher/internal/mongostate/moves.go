package mongostate

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/checkpoint"
)

// Move is a change of a checkpoint by an operator.
type Move struct {
	Stream string `bson:"stream"`
	// Action is what was asked for: set or reset.
	Action string `bson:"action"`
	Who    string `bson:"who"`
	Why    string `bson:"why"`
	// Forced says that it was made beside a live lease.
	Forced bool      `bson:"forced"`
	At     time.Time `bson:"at"`
}

// MoveCheckpoint moves a checkpoint to a place, in a term of its own: a leader
// that runs meanwhile is refused its next save, and goes on from that place in a
// later term. What was there before and what comes is in the log before it is
// done. With keepOptions the place stays one of the stream's options as they
// were recorded.
func (d *Database) MoveCheckpoint(ctx context.Context, move Move, to checkpoint.Place, keepOptions bool) (before checkpoint.Checkpoint, err error) {
	claimed, err := checkpoint.Claim(ctx, d.Checkpoints(), move.Stream, move.Who)
	if err != nil {
		return checkpoint.Checkpoint{}, err
	}
	before = claimed.Checkpoint
	id := bson.NewObjectID()
	_, err = d.db.Collection(moves).InsertOne(ctx, struct {
		ID     bson.ObjectID `bson:"_id"`
		Move   `bson:",inline"`
		Term   int64  `bson:"term"`
		Before bson.D `bson:"before"`
		After  bson.D `bson:"after"`
		Done   bool   `bson:"done"`
	}{ID: id, Move: move, Term: before.Term, Before: fields(before.Place), After: fields(to)})
	if err != nil {
		return before, fmt.Errorf("log the change of checkpoint %q: %w", move.Stream, err)
	}
	if !keepOptions {
		claimed.Options = ""
	}
	if err := claimed.Move(ctx, to); err != nil {
		return before, err
	}
	_, err = d.db.Collection(moves).UpdateByID(ctx, id, bson.D{{Key: "$set", Value: bson.D{{Key: "done", Value: true}}}})
	if err != nil {
		return before, fmt.Errorf("checkpoint %q is changed, but its log does not say so: %w", move.Stream, err)
	}
	return before, nil
}

// fields are the fields of a place as they are stored.
func fields(place checkpoint.Place) bson.D {
	for _, part := range setPlace(place) {
		if set, ok := part.Value.(bson.D); ok && part.Key == "$set" {
			return set
		}
	}
	return bson.D{}
}
