package mongostate

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/majority"
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
	Claim     string          `bson:"claim,omitempty"`
	ClaimedAt time.Time       `bson:"claimedAt,omitempty"`
	Retired   bool            `bson:"retired,omitempty"`
	Anew      bool            `bson:"anew,omitempty"`
	Token     bson.Raw        `bson:"token,omitempty"`
	Position  string          `bson:"position,omitempty"`
	Event     *bson.Timestamp `bson:"event,omitempty"`
	StartAt   *bson.Timestamp `bson:"startAt,omitempty"`
	Copy      *copyDocument   `bson:"copy,omitempty"`
	Options   string          `bson:"options,omitempty"`
	UpdatedAt time.Time       `bson:"updatedAt,omitempty"`
	Saves     int64           `bson:"saves,omitempty"`
	Moved     string          `bson:"moved,omitempty"`
	Parked    *asideDocument  `bson:"parked,omitempty"`
	Kept      *namesDocument  `bson:"kept,omitempty"`
}

type copyDocument struct {
	Cause   string    `bson:"cause"`
	Since   time.Time `bson:"since,omitempty"`
	Order   string    `bson:"order,omitempty"`
	After   bson.Raw  `bson:"after,omitempty"`
	Copied  int64     `bson:"copied"`
	Total   int64     `bson:"total"`
	BeganAt time.Time `bson:"beganAt"`
	Done    bool      `bson:"done"`
}

func (d checkpointDocument) checkpoint() checkpoint.Checkpoint {
	return checkpoint.Checkpoint{
		Stream:    d.Stream,
		Term:      d.Term,
		Claim:     d.Claim,
		ClaimedAt: d.ClaimedAt,
		Retired:   d.Retired,
		Place: checkpoint.Place{
			Token:    d.Token,
			Position: contract.Position(d.Position),
			Event:    clusterTime(d.Event),
			Start:    clusterTime(d.StartAt),
			Copy:     d.Copy.copy(),
			Anew:     d.Anew,
		},
		Options:   d.Options,
		UpdatedAt: d.UpdatedAt,
		Saves:     d.Saves,
		Moved:     d.Moved,
		Aside:     d.Parked.aside(),
		Names:     d.Kept.names(),
	}
}

func (d *copyDocument) copy() *checkpoint.Copy {
	if d == nil {
		return nil
	}
	c := &checkpoint.Copy{
		Cause: d.Cause, Order: d.Order, After: d.After, Copied: d.Copied, Total: d.Total, BeganAt: d.BeganAt.UTC(), Done: d.Done,
	}
	if !d.Since.IsZero() {
		c.Since = d.Since.UTC()
	}
	return c
}

// setPlace is the update that makes a place the checkpoint's, and leaves
// nothing of another. Of the fields with it, those that are nil are removed.
func setPlace(place checkpoint.Place, fields ...bson.E) bson.D {
	var set, unset bson.D
	put := func(field string, there bool, value any) {
		if there {
			set = append(set, bson.E{Key: field, Value: value})
		} else {
			unset = append(unset, bson.E{Key: field, Value: ""})
		}
	}
	for _, field := range fields {
		put(field.Key, field.Value != nil, field.Value)
	}
	put("token", place.Token != nil, bson.Raw(place.Token))
	put("position", place.Position != "", string(place.Position))
	put("event", !place.Event.IsZero(), timestamp(place.Event))
	put("startAt", !place.Start.IsZero(), timestamp(place.Start))
	put("copy", place.Copy != nil, documentOf(place.Copy))
	put("anew", place.Anew, true)
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
		Cause: c.Cause, Since: c.Since, Order: c.Order, After: c.After, Copied: c.Copied, Total: c.Total, BeganAt: c.BeganAt, Done: c.Done,
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
func (c *Checkpoints) Claim(ctx context.Context, stream string, by checkpoint.Claimant) (checkpoint.Checkpoint, error) {
	above := bson.D{{Key: "$max", Value: bson.A{bson.D{{Key: "$ifNull", Value: bson.A{"$term", int64(0)}}}, by.Above}}}
	update := mongo.Pipeline{{{Key: "$set", Value: bson.D{
		{Key: "term", Value: bson.D{{Key: "$add", Value: bson.A{above, int64(1)}}}},
		{Key: "saves", Value: int64(0)},
		{Key: "owner", Value: literal(by.Owner)},
		{Key: "claim", Value: rand.Text()},
		{Key: "claimedAt", Value: "$$NOW"},
	}}}}
	claim := func() (checkpoint.Checkpoint, error) {
		return c.modify(ctx, append(byStream(stream), inUse()), update, options.FindOneAndUpdate().SetUpsert(by.Create))
	}
	found, err := claim()
	if mongo.IsDuplicateKeyError(err) {
		found, err = claim() // somebody else inserted the document first, or it is retired
	}
	switch {
	case mongo.IsDuplicateKeyError(err):
		return found, checkpoint.ErrSuperseded
	case errors.Is(err, mongo.ErrNoDocuments):
		return found, checkpoint.ErrMissing
	}
	return found, err
}

// Pin implements checkpoint.Store.
func (c *Checkpoints) Pin(ctx context.Context, stream string, term int64, start checkpoint.Place) (checkpoint.Checkpoint, error) {
	held := append(byTerm(stream, term), inUse())
	unpinned := append(slices.Clip(held),
		bson.E{Key: "startAt", Value: nil}, // null or absent
		bson.E{Key: "token", Value: nil})
	found, err := c.modify(ctx, unpinned, setPlace(start), options.FindOneAndUpdate())
	if !errors.Is(err, mongo.ErrNoDocuments) {
		return found, err
	}
	return c.find(ctx, held) // pinned already, or superseded
}

// Save implements checkpoint.Store.
func (c *Checkpoints) Save(ctx context.Context, stream string, term int64, progress checkpoint.Progress) error {
	held := append(byTerm(stream, term), inUse())
	if progress.Claim != "" {
		held = append(held, bson.E{Key: "claim", Value: progress.Claim})
	}
	if progress.Behind > 0 {
		held = append(held, bson.E{Key: "saves", Value: bson.D{{Key: "$gte", Value: progress.Behind}}})
	}
	mine := append(slices.Clip(held),
		bson.E{Key: "saves", Value: bson.D{{Key: "$lt", Value: progress.Number}}})
	number := bson.E{Key: "saves", Value: progress.Number}
	fields := bson.D{number, {Key: "options", Value: progress.Options}}
	if progress.Moved != "" {
		fields = append(fields, bson.E{Key: "moved", Value: progress.Moved})
	}
	var update any = setPlace(progress.Place, fields...)
	if progress.Mark {
		update = noteUpdate(bson.D{number}, progress.Aside, progress.Naming)
	}
	result, err := c.documents.UpdateOne(ctx, mine, update)
	if err != nil {
		return majority.Explain(ctx, c.documents.Database().Client(), err)
	}
	if result.MatchedCount == 1 {
		return nil
	}
	_, err = c.find(ctx, held) // a later save of ours is in, or superseded
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

// find reads the checkpoint that is still held so.
func (c *Checkpoints) find(ctx context.Context, held bson.D) (checkpoint.Checkpoint, error) {
	var found checkpointDocument
	err := c.documents.FindOne(ctx, held).Decode(&found)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return checkpoint.Checkpoint{}, checkpoint.ErrSuperseded
	}
	return found.checkpoint(), err
}

func (c *Checkpoints) modify(ctx context.Context, filter bson.D, update any, o *options.FindOneAndUpdateOptionsBuilder) (checkpoint.Checkpoint, error) {
	var after checkpointDocument
	err := c.documents.FindOneAndUpdate(ctx, filter, update, o.SetReturnDocument(options.After)).Decode(&after)
	return after.checkpoint(), majority.Explain(ctx, c.documents.Database().Client(), err)
}

func byStream(stream string) bson.D { return bson.D{{Key: "_id", Value: stream}} }

func byTerm(stream string, term int64) bson.D {
	return append(byStream(stream), bson.E{Key: "term", Value: term})
}

// inUse is the filter of what is not retired.
func inUse() bson.E {
	return bson.E{Key: "retired", Value: bson.D{{Key: "$ne", Value: true}}}
}
