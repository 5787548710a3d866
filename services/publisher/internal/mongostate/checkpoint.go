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
	Copy      *copyDocument   `bson:"copy,omitempty"`
	Options   string          `bson:"options,omitempty"`
	UpdatedAt time.Time       `bson:"updatedAt,omitempty"`
}

type copyDocument struct {
	Cause   string    `bson:"cause"`
	Since   time.Time `bson:"since,omitempty"`
	After   bson.Raw  `bson:"after,omitempty"`
	Copied  int64     `bson:"copied"`
	Total   int64     `bson:"total"`
	BeganAt time.Time `bson:"beganAt"`
	Done    bool      `bson:"done"`
}

func (d checkpointDocument) checkpoint() checkpoint.Checkpoint {
	return checkpoint.Checkpoint{
		Stream: d.Stream,
		Term:   d.Term,
		Place: checkpoint.Place{
			Token:    d.Token,
			Position: contract.Position(d.Position),
			Start:    clusterTime(d.StartAt),
			Copy:     d.Copy.copy(),
		},
		Options:   d.Options,
		UpdatedAt: d.UpdatedAt,
	}
}

func (d *copyDocument) copy() *checkpoint.Copy {
	if d == nil {
		return nil
	}
	c := &checkpoint.Copy{
		Cause: d.Cause, After: d.After, Copied: d.Copied, Total: d.Total, BeganAt: d.BeganAt.UTC(), Done: d.Done,
	}
	if !d.Since.IsZero() {
		c.Since = d.Since.UTC()
	}
	return c
}

// setPlace is the update that makes a place the checkpoint's, and leaves
// nothing of another.
func setPlace(place checkpoint.Place, fields ...bson.E) bson.D {
	set, unset := bson.D(fields), bson.D{}
	put := func(field string, there bool, value any) {
		if there {
			set = append(set, bson.E{Key: field, Value: value})
		} else {
			unset = append(unset, bson.E{Key: field, Value: ""})
		}
	}
	put("token", place.Token != nil, bson.Raw(place.Token))
	put("position", place.Position != "", string(place.Position))
	put("startAt", !place.Start.IsZero(), timestamp(place.Start))
	put("copy", place.Copy != nil, documentOf(place.Copy))
	update := bson.D{{Key: "$currentDate", Value: bson.D{{Key: "updatedAt", Value: true}}}}
	if len(set) > 0 {
		update = append(update, bson.E{Key: "$set", Value: set})
	}
	if len(unset) > 0 {
		update = append(update, bson.E{Key: "$unset", Value: unset})
	}
	return update
}

func documentOf(c *checkpoint.Copy) *copyDocument {
	if c == nil {
		return nil
	}
	return &copyDocument{
		Cause: c.Cause, Since: c.Since, After: c.After, Copied: c.Copied, Total: c.Total, BeganAt: c.BeganAt, Done: c.Done,
	}
}

func timestamp(t checkpoint.ClusterTime) bson.Timestamp {
	return bson.Timestamp{T: t.Seconds, I: t.Increment}
}

func clusterTime(t *bson.Timestamp) checkpoint.ClusterTime {
	if t == nil {
		return checkpoint.ClusterTime{}
	}
	return checkpoint.ClusterTime{Seconds: t.T, Increment: t.I}
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
func (c *Checkpoints) Pin(ctx context.Context, stream string, term int64, start checkpoint.Place) (checkpoint.Checkpoint, error) {
	unpinned := append(byTerm(stream, term),
		bson.E{Key: "startAt", Value: nil}, // null or absent
		bson.E{Key: "token", Value: nil})
	found, err := c.modify(ctx, unpinned, setPlace(start), options.FindOneAndUpdate())
	if !errors.Is(err, mongo.ErrNoDocuments) {
		return found, err
	}
	return c.held(ctx, stream, term) // pinned already, or superseded
}

// Save implements checkpoint.Store.
func (c *Checkpoints) Save(ctx context.Context, stream string, term int64, progress checkpoint.Progress) error {
	mine := append(byTerm(stream, term),
		bson.E{Key: "saves", Value: bson.D{{Key: "$lt", Value: progress.Number}}})
	result, err := c.documents.UpdateOne(ctx, mine, setPlace(progress.Place,
		bson.E{Key: "saves", Value: progress.Number},
		bson.E{Key: "options", Value: progress.Options}))
	if err != nil {
		return err
	}
	if result.MatchedCount == 1 {
		return nil
	}
	_, err = c.held(ctx, stream, term) // a later save of ours is in, or superseded
	return err
}

// ErrNone is returned by Read where there is no checkpoint.
var ErrNone = mongo.ErrNoDocuments

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
