package mongostate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// shownGaps is how many gaps are listed, the latest ones.
const shownGaps = 20

// Gap is a stretch of a stream's history that the source could not show, and
// what was decided about it.
type Gap struct {
	ID     string `bson:"_id" json:"id"`
	Stream string `bson:"stream" json:"stream"`
	// From is the position up to which everything was published; empty where
	// nothing was.
	From string `bson:"from" json:"from"`
	// FromTime and ToTime are the times, by the source's cluster, between which
	// changes were not read from the stream. ToTime is zero when nothing was done.
	FromTime time.Time `bson:"fromTime" json:"from_time"`
	ToTime   time.Time `bson:"toTime,omitempty" json:"to_time,omitzero"`
	Cause    string    `bson:"cause" json:"cause"`
	Error    string    `bson:"error" json:"error"`
	Decision string    `bson:"decision" json:"decision"`
	At       time.Time `bson:"at" json:"at"`
	Instance string    `bson:"instance" json:"instance"`
	Term     int64     `bson:"term" json:"term"`
}

// Gaps is the ledger of one stream's gaps.
type Gaps struct {
	stream  string
	entries *mongo.Collection
}

// Gaps returns the ledger of a stream.
func (d *Database) Gaps(stream string) *Gaps {
	return &Gaps{stream: stream, entries: d.db.Collection(gaps)}
}

// Enter writes a gap down. The same decision about the same place is one entry,
// which keeps what it said first, and where the stream went on last.
func (g *Gaps) Enter(ctx context.Context, gap Gap) error {
	h := sha256.Sum256([]byte(g.stream + "\x00" + gap.From + "\x00" + gap.FromTime.String() + "\x00" + gap.Decision))
	id := hex.EncodeToString(h[:12])
	first := bson.D{
		{Key: "stream", Value: g.stream},
		{Key: "from", Value: gap.From},
		{Key: "fromTime", Value: gap.FromTime},
		{Key: "cause", Value: gap.Cause},
		{Key: "error", Value: gap.Error},
		{Key: "decision", Value: gap.Decision},
		{Key: "at", Value: gap.At},
		{Key: "instance", Value: gap.Instance},
	}
	last := bson.D{{Key: "term", Value: gap.Term}}
	if !gap.ToTime.IsZero() {
		last = append(last, bson.E{Key: "toTime", Value: gap.ToTime})
	}
	_, err := g.entries.UpdateByID(ctx, id, bson.D{
		{Key: "$setOnInsert", Value: first},
		{Key: "$set", Value: last},
	}, options.UpdateOne().SetUpsert(true))
	if err != nil {
		return fmt.Errorf("enter a gap of stream %q: %w", g.stream, err)
	}
	return nil
}

// Latest returns the latest gaps, oldest first.
func (g *Gaps) Latest(ctx context.Context) ([]Gap, error) {
	cursor, err := g.entries.Find(ctx, bson.D{{Key: "stream", Value: g.stream}}, options.Find().
		SetSort(bson.D{{Key: "at", Value: -1}}).SetLimit(shownGaps))
	if err != nil {
		return nil, fmt.Errorf("read the gaps of stream %q: %w", g.stream, err)
	}
	var found []Gap
	if err := cursor.All(ctx, &found); err != nil {
		return nil, fmt.Errorf("read the gaps of stream %q: %w", g.stream, err)
	}
	slices.Reverse(found)
	return found, nil
}
