package mongostate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// shownGaps is how many gaps are listed, the latest ones.
const shownGaps = 20

// Gap is a stretch of a stream's history that was not read from the stream, or
// something else after which it may not be as it was, and what was decided.
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
	// Unfinished says that the entry was made before what it says was done, and that
	// it is not known yet whether it was: the next term, or command, finds out.
	Unfinished bool `bson:"unfinished,omitempty" json:"unfinished,omitempty"`
	// What tells entries apart that have all else in common; empty where the place,
	// decision and cause do.
	What string `bson:"-" json:"-"`
}

// Gaps is the ledger of one stream's gaps.
type Gaps struct {
	stream  string
	shown   bson.D // the filter of what is shown with it
	earlier bson.D // the filter of what tells that the stream was there
	entries *mongo.Collection
}

// Gaps returns the ledger of a stream.
func (d *Database) Gaps(stream string) *Gaps {
	own := bson.D{{Key: "stream", Value: stream}}
	return &Gaps{stream: stream, shown: own, earlier: own, entries: d.db.Collection(gaps)}
}

// Ledger returns the ledger of one partition of a whole stream, which may be its
// only one. What is entered for the whole, or was for another number of
// partitions, is shown with the first; and it tells of each that the stream was
// there, but for what was purged, which no first start waits for.
func (d *Database) Ledger(whole string, partitions, index int) *Gaps {
	names := PartitionNames(whole, partitions)
	g := d.Gaps(names[index])
	but := func(others []string, more ...bson.E) bson.D {
		return append(bson.D{{Key: "$and", Value: bson.A{
			bson.D{anyPartition("stream", whole)}, bson.D{{Key: "stream", Value: bson.D{{Key: "$nin", Value: others}}}},
		}}}, more...)
	}
	if index == 0 {
		g.shown = but(names[1:])
	}
	g.earlier = but(slices.Delete(slices.Clone(names), index, index+1), bson.E{Key: "decision", Value: bson.D{{Key: "$ne", Value: Discarded}}})
	return g
}

// Enter writes a gap down. The same decision about the same place is one entry,
// which keeps what it said first, and where the stream went on last.
func (g *Gaps) Enter(ctx context.Context, gap Gap) error {
	return g.enter(ctx, gap)
}

// Announce writes a gap down that a move of that name is to make, as unfinished. It
// is for whoever makes the move to Settle it.
func (g *Gaps) Announce(ctx context.Context, gap Gap, move string) error {
	return g.enter(ctx, gap, bson.E{Key: "unfinished", Value: true}, bson.E{Key: "move", Value: move})
}

func (g *Gaps) enter(ctx context.Context, gap Gap, more ...bson.E) error {
	id := gap.id(g.stream)
	first := bson.D{
		{Key: "stream", Value: g.stream},
		{Key: "from", Value: gap.From},
		{Key: "fromTime", Value: gap.FromTime},
		{Key: "cause", Value: gap.Cause},
		{Key: "at", Value: gap.At},
		{Key: "instance", Value: gap.Instance},
	}
	last := append(bson.D{{Key: "term", Value: gap.Term}}, more...)
	said := bson.D{{Key: "error", Value: gap.Error}, {Key: "decision", Value: gap.Decision}}
	if len(more) > 0 { // it may have been announced before, and not done
		last = append(last, said...)
	} else {
		first = append(first, said...)
	}
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

func (gap Gap) id(stream string) string {
	text := stream + "\x00" + gap.From + "\x00" + gap.FromTime.UTC().String() + "\x00" + gap.Decision + "\x00" + gap.Cause
	if gap.What != "" {
		text += "\x00" + gap.What
	}
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:12])
}

// Void as a decision is that of an entry which is no gap: what was decided was
// not done.
const Void = "void"

// Void says that what an entry announces was not done, and why.
func (g *Gaps) Void(ctx context.Context, gap Gap, why error) error {
	_, err := g.entries.UpdateByID(ctx, gap.id(g.stream), bson.D{{Key: "$set", Value: bson.D{
		{Key: "decision", Value: Void}, {Key: "toTime", Value: gap.FromTime}, {Key: "error", Value: "not done: " + why.Error()},
	}}, {Key: "$unset", Value: bson.D{{Key: "unfinished", Value: ""}}}})
	if err != nil {
		return fmt.Errorf("say that stream %q passes over nothing: %w", g.stream, err)
	}
	return nil
}

// Made says that what an entry announces was done, where the entry says that it
// was not: who takes a command for dead may be wrong.
func (g *Gaps) Made(ctx context.Context, gap Gap) error {
	set := bson.D{{Key: "decision", Value: gap.Decision}, {Key: "error", Value: gap.Error}}
	update := bson.D{{Key: "$unset", Value: bson.D{{Key: "toTime", Value: ""}}}}
	if !gap.ToTime.IsZero() {
		set, update = append(set, bson.E{Key: "toTime", Value: gap.ToTime}), nil
	}
	which := bson.D{{Key: "_id", Value: gap.id(g.stream)}, {Key: "decision", Value: Void}}
	if _, err := g.entries.UpdateOne(ctx, which, append(update, bson.E{Key: "$set", Value: set})); err != nil {
		return fmt.Errorf("say that stream %q passes over a gap: %w", g.stream, err)
	}
	return nil
}

// GoOn writes into the latest entry of a decision where the stream goes on after
// it, however often that is decided anew. It is nothing where there is no entry.
func (g *Gaps) GoOn(ctx context.Context, decision string, at time.Time) error {
	latest := options.FindOneAndUpdate().SetSort(bson.D{{Key: "term", Value: -1}, {Key: "at", Value: -1}})
	which := bson.D{{Key: "stream", Value: g.stream}, {Key: "decision", Value: decision}}
	err := g.entries.FindOneAndUpdate(ctx, which, bson.D{{Key: "$set", Value: bson.D{{Key: "toTime", Value: at}}}}, latest).Err()
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return fmt.Errorf("say where stream %q goes on after %q: %w", g.stream, decision, err)
	}
	return nil
}

// Lost as a decision is that of an entry for what was kept aside and is gone.
const Lost = "lost"

// Began as a decision is that of an entry which is no gap: it says where the
// stream began.
const Began = "begin"

// gaps is the filter of the entries that are gaps.
func (g *Gaps) gaps() bson.D {
	return append(slices.Clip(g.shown), bson.E{Key: "decision", Value: bson.D{{Key: "$nin", Value: bson.A{Began, Void}}}})
}

// Any reports whether anything was ever entered in a term. What kept the stream
// from its first start was not.
func (g *Gaps) Any(ctx context.Context) (bool, error) {
	err := g.entries.FindOne(ctx, append(slices.Clip(g.earlier), bson.E{Key: "term", Value: bson.D{{Key: "$gt", Value: 0}}})).Err()
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return false, fmt.Errorf("read the ledger of stream %q: %w", g.stream, err)
	}
	return err == nil, nil
}

// Unfinished stands for the decision of entries that are, where they are counted.
const Unfinished = "unfinished"

// Counts returns how many gaps there are, by their decisions.
func (g *Gaps) Counts(ctx context.Context) (map[string]int64, error) {
	counted := bson.D{{Key: "$cond", Value: bson.A{bson.D{{Key: "$eq", Value: bson.A{"$unfinished", true}}}, Unfinished, "$decision"}}}
	cursor, err := g.entries.Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: g.gaps()}},
		{{Key: "$group", Value: bson.D{{Key: "_id", Value: counted}, {Key: "n", Value: bson.D{{Key: "$sum", Value: int64(1)}}}}}},
	})
	if err != nil {
		return nil, fmt.Errorf("count the gaps of stream %q: %w", g.stream, err)
	}
	var found []struct {
		Decision string `bson:"_id"`
		N        int64  `bson:"n"`
	}
	if err := cursor.All(ctx, &found); err != nil {
		return nil, fmt.Errorf("count the gaps of stream %q: %w", g.stream, err)
	}
	counts := make(map[string]int64, len(found))
	for _, one := range found {
		counts[one.Decision] = one.N
	}
	return counts, nil
}

// Latest returns the latest gaps, oldest first.
func (g *Gaps) Latest(ctx context.Context) ([]Gap, error) {
	cursor, err := g.entries.Find(ctx, g.gaps(), options.Find().
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
