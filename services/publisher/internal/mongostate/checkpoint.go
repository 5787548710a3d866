package mongostate

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
)

// Checkpoints implements checkpoint.Store.
type Checkpoints struct {
	documents *mongo.Collection
}

// Checkpoints returns the store of checkpoints.
func (d *Database) Checkpoints() *Checkpoints {
	return &Checkpoints{documents: d.db.Collection(checkpoints)}
}

type checkpointDocument struct {
	Stream    string          `bson:"_id"`
	Term      int64           `bson:"term"`
	Token     bson.Raw        `bson:"token,omitempty"`
	Position  string          `bson:"position,omitempty"`
	StartAt   *bson.Timestamp `bson:"startAt,omitempty"`
	UpdatedAt time.Time       `bson:"updatedAt,omitempty"`
}

func (d checkpointDocument) checkpoint() checkpoint.Checkpoint {
	c := checkpoint.Checkpoint{
		Stream:    d.Stream,
		Term:      d.Term,
		Token:     d.Token,
		Position:  contract.Position(d.Position),
		UpdatedAt: d.UpdatedAt,
	}
	if d.StartAt != nil {
		c.Start = checkpoint.ClusterTime{Seconds: d.StartAt.T, Increment: d.StartAt.I}
	}
	return c
}

// Claim implements checkpoint.Store.
func (c *Checkpoints) Claim(ctx context.Context, stream, owner string) (checkpoint.Checkpoint, error) {
	claim := func() (checkpoint.Checkpoint, error) {
		return c.modify(ctx, byStream(stream), bson.D{
			{Key: "$inc", Value: bson.D{{Key: "term", Value: int64(1)}}},
			{Key: "$set", Value: bson.D{{Key: "saves", Value: int64(0)}, {Key: "owner", Value: owner}}},
			{Key: "$currentDate", Value: bson.D{{Key: "claimedAt", Value: true}}},
		}, options.FindOneAndUpdate().SetUpsert(true))
	}
	found, err := claim()
	if mongo.IsDuplicateKeyError(err) {
		return claim() // somebody else inserted the document first
	}
	return found, err
}

// Pin implements checkpoint.Store.
func (c *Checkpoints) Pin(ctx context.Context, stream string, term int64, start checkpoint.ClusterTime) (checkpoint.Checkpoint, error) {
	unpinned := append(byTerm(stream, term),
		bson.E{Key: "startAt", Value: nil}, // null or absent
		bson.E{Key: "token", Value: nil})
	found, err := c.modify(ctx, unpinned, bson.D{
		{Key: "$set", Value: bson.D{{Key: "startAt", Value: bson.Timestamp{T: start.Seconds, I: start.Increment}}}},
	}, options.FindOneAndUpdate())
	if !errors.Is(err, mongo.ErrNoDocuments) {
		return found, err
	}
	return c.held(ctx, stream, term) // pinned already, or superseded
}

// Save implements checkpoint.Store.
func (c *Checkpoints) Save(ctx context.Context, stream string, term int64, progress checkpoint.Progress) error {
	mine := append(byTerm(stream, term),
		bson.E{Key: "saves", Value: bson.D{{Key: "$lt", Value: progress.Number}}})
	result, err := c.documents.UpdateOne(ctx, mine, bson.D{
		{Key: "$set", Value: bson.D{
			{Key: "token", Value: bson.Raw(progress.Token)},
			{Key: "position", Value: string(progress.Position)},
			{Key: "saves", Value: progress.Number},
		}},
		{Key: "$currentDate", Value: bson.D{{Key: "updatedAt", Value: true}}},
	})
	if err != nil {
		return err
	}
	if result.MatchedCount == 1 {
		return nil
	}
	_, err = c.held(ctx, stream, term) // a later save of ours is in, or superseded
	return err
}

// Read returns a stream's checkpoint without claiming it, for people.
func (c *Checkpoints) Read(ctx context.Context, stream string) (checkpoint.Checkpoint, error) {
	var found checkpointDocument
	err := c.documents.FindOne(ctx, byStream(stream)).Decode(&found)
	return found.checkpoint(), err
}

// held reads the checkpoint that is still of the given term.
func (c *Checkpoints) held(ctx context.Context, stream string, term int64) (checkpoint.Checkpoint, error) {
	var found checkpointDocument
	err := c.documents.FindOne(ctx, byTerm(stream, term)).Decode(&found)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return checkpoint.Checkpoint{}, checkpoint.ErrSuperseded
	}
	return found.checkpoint(), err
}

func (c *Checkpoints) modify(ctx context.Context, filter, update bson.D, o *options.FindOneAndUpdateOptionsBuilder) (checkpoint.Checkpoint, error) {
	var after checkpointDocument
	err := c.documents.FindOneAndUpdate(ctx, filter, update, o.SetReturnDocument(options.After)).Decode(&after)
	return after.checkpoint(), err
}

func byStream(stream string) bson.D { return bson.D{{Key: "_id", Value: stream}} }

func byTerm(stream string, term int64) bson.D {
	return append(byStream(stream), bson.E{Key: "term", Value: term})
}
