package mongostate

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/checkpoint"
)

// ErrPartitioned is wrapped by what CheckPartitions returns.
var ErrPartitioned = errors.New("the stream's checkpoints are of another number of partitions")

// Names of one partition of several: of its checkpoint, and of its lease.
func partitionName(name string, partition, of int) string {
	if of == 1 {
		return name
	}
	return fmt.Sprintf("%s-%dof%d", name, partition, of)
}

// PartitionNames are the names of checkpoints, or leases, of all partitions.
func PartitionNames(name string, of int) []string {
	names := make([]string, of)
	for i := range names {
		names[i] = partitionName(name, i, of)
	}
	return names
}

// CheckPartitions returns an error when there are records or checkpoints of the
// stream with another number of partitions.
func (d *Database) CheckPartitions(ctx context.Context, stream string, of int) error {
	scope, err := d.Scope(ctx, stream, "")
	if err != nil {
		return err
	}
	found := scope.Partitions()
	switch {
	case len(found) == 0, slices.Equal(found, []int{of}):
		return nil
	case len(found) == 1:
		return fmt.Errorf("%w: there is %q, and PARTITIONS is %d; set PARTITIONS to %d, or to change it "+
			"stop all publishers of the stream, run publisher repartition, start them again", ErrPartitioned, scope.Names(), of, found[0])
	default:
		return fmt.Errorf("%w: there are several, %q; stop all publishers of the stream, "+
			"and say which of them are right with publisher repartition --from %s", ErrPartitioned, scope.Names(), scope.rightText())
	}
}

// Repartition is a change of a stream's number of partitions.
type Repartition struct {
	Stream, Lease string
	From, To      int
	By            string
	// Now is the source's clock, which no checkpoint may be after; zero is not compared.
	Now checkpoint.ClusterTime
	// Settings are those of the process that asks for it; nil are not compared.
	Settings checkpoint.Settings
}

// Carried is what a repartition does.
type Carried struct {
	Stream string `json:"stream"`
	From   int    `json:"from"`
	To     int    `json:"to"`
	// Place is where all new partitions begin: where the one was that was least
	// far; empty where nothing is to be done but to retire others.
	Place string `json:"place,omitempty"`
	Term  int64  `json:"term,omitempty"`
	// Created are the new checkpoints, and Retired those that are not used any more.
	Created []string `json:"created,omitempty"`
	Retired []string `json:"retired,omitempty"`
}

// Plan returns what a repartition of the scope would do. From is 0 where it is
// to be found out: there must be one number of partitions beside the new one.
func (s Scope) Plan(r Repartition) (Carried, Repartition, error) {
	plan := Carried{Stream: s.Whole, From: r.From, To: r.To}
	if err := s.source(&r); err != nil {
		return plan, r, err
	}
	plan.From = r.From
	if err := s.fits(Said{Lease: r.Lease, Settings: r.Settings}); err != nil {
		return plan, r, err
	}
	if len(s.Holders) > 0 {
		return plan, r, fmt.Errorf("lease %q is held by %q: stop all publishers of the stream first", s.Holders[0].Lease, s.Holders[0].ID)
	}
	keep := PartitionNames(s.Whole, r.To)
	plan.Retired = slices.DeleteFunc(s.Names(), func(name string) bool { return slices.Contains(keep, name) })
	if r.From == r.To {
		return plan, r, nil
	}
	if err := s.trusted(r.From); err != nil {
		return plan, r, err
	}
	start, err := s.LeastFar(r.From)
	if err != nil {
		return plan, r, err
	}
	plan.Created, plan.Place, plan.Term = keep, placeText(start.Place), s.Highest+1
	return plan, r, nil
}

// source finds out which checkpoints are carried over.
func (s Scope) source(r *Repartition) error {
	found := s.Partitions()
	others := slices.DeleteFunc(slices.Clone(found), func(n int) bool { return n == r.To })
	switch {
	case len(found) == 0:
		return fmt.Errorf("%w: nothing is known of a stream %q; see STREAM_NAME and STATE_DATABASE", ErrScope, s.Whole)
	case r.From != 0 && !slices.Contains(found, r.From):
		return fmt.Errorf("%w: stream %q has no checkpoints of %d partitions, but %q", ErrScope, s.Whole, r.From, s.Names())
	case r.From != 0:
	case len(others) == 0:
		r.From = r.To // done already
	case s.right() != 0:
		r.From = s.right()
	case len(others) > 1, len(found) > 1 && !s.unused(r.To):
		return fmt.Errorf("%w: stream %q has checkpoints of several numbers of partitions, %q; say which of them are right with --from N",
			ErrScope, s.Whole, s.Names())
	default:
		r.From = others[0]
	}
	return nil
}

// right is the number of partitions that a repartition which did not end leaves in
// use, where that is certain; or else 0. It makes all that is new before it retires
// the first of the old: so what is retired in part is the old, or new and not made
// in full; and where nothing is, that is right by which something was published.
func (s Scope) right() int {
	numbers := s.Partitions()
	if len(numbers) < 2 {
		return 0
	}
	numbers = slices.DeleteFunc(numbers, func(n int) bool {
		return slices.ContainsFunc(PartitionNames(s.Whole, n), func(name string) bool { return s.Retired[name] })
	})
	if len(numbers) > 1 {
		numbers = slices.DeleteFunc(numbers, s.unused)
	}
	if len(numbers) != 1 {
		return 0
	}
	return numbers[0]
}

// rightText is the number that is right, or a placeholder where only people know.
func (s Scope) rightText() string {
	if right := s.right(); right != 0 {
		return strconv.Itoa(right)
	}
	return "N"
}

// unused reports whether nothing was ever published by the checkpoints of a
// number of partitions: a repartition that was interrupted made them.
func (s Scope) unused(partitions int) bool {
	return !slices.ContainsFunc(s.Of(partitions), func(name string) bool {
		record, known := s.Records[name]
		return !known || record.Confirmed > 0
	})
}

// trusted returns an error where a checkpoint of a number of partitions does not go
// with its record, so that its stream halts until that is decided: what is made of
// both would halt no more. One of a version without records has none.
func (s Scope) trusted(partitions int) error {
	for _, name := range PartitionNames(s.Whole, partitions) {
		found := s.Checkpoints[name]
		record, known := s.Records[name]
		if !known && found.Claim == "" || known && !record.Undecided && found.Term >= record.Confirmed {
			continue
		}
		return fmt.Errorf("checkpoint %q does not go with its record in streams, which was lost, or knows of a later term: decide first, "+
			"with PARTITIONS=%d, with publisher checkpoint accept --why TEXT, which goes on from it, or publisher checkpoint set PLACE --why TEXT", name, partitions)
	}
	return nil
}

// LeastFar returns the checkpoint of a number of partitions that is behind all
// others. All must be there, with a place.
func (s Scope) LeastFar(partitions int) (checkpoint.Checkpoint, error) {
	var all []checkpoint.Checkpoint
	for _, name := range PartitionNames(s.Whole, partitions) {
		found, exists := s.Checkpoints[name]
		switch {
		case !exists:
			return found, fmt.Errorf("checkpoint %q is missing: restore it, or give the stream a place with publisher checkpoint set", name)
		case found.Copying():
			return found, fmt.Errorf("checkpoint %q is in the middle of a copy of the source: let it be finished first", name)
		case !found.Pinned():
			return found, fmt.Errorf("checkpoint %q has no place: nothing can be carried over from it", name)
		}
		all = append(all, found)
	}
	return slices.MinFunc(all, func(a, b checkpoint.Checkpoint) int { return cmp.Compare(placeText(a.Place), placeText(b.Place)) }), nil
}

// placeText returns a place's position; before its first save the one at which
// it starts, which sorts below any position of that time. A token without a
// position sorts below all.
func placeText(p checkpoint.Place) string {
	if p.Position != "" {
		return strings.ToLower(string(p.Position))
	}
	return fmt.Sprintf("%08x%08x.", p.Start.Seconds, p.Start.Increment)
}

// Repartition replaces the stream's checkpoints by those of another number of
// partitions, each at the place of the one that was least far: what the others
// had sent beyond it is sent again, with the same ids. What it replaces is kept,
// and retired under a term above every claim, so that a leader that still runs
// is refused. What stopped it in the middle does not keep it from being called
// again.
func (d *Database) Repartition(ctx context.Context, r Repartition, dry bool) (Carried, error) {
	scope, err := d.Scope(ctx, r.Stream, r.Lease)
	if err != nil {
		return Carried{}, err
	}
	plan, r, err := scope.Plan(r)
	if err == nil && len(plan.Created) > 0 {
		err = d.refuseAhead(ctx, scope, r)
	}
	if err != nil || dry {
		return plan, err
	}
	if len(plan.Created)+len(plan.Retired) == 0 {
		return plan, d.SettleRetired(ctx, r.Stream)
	}
	_, err = d.db.Collection(replaced).InsertOne(ctx, bson.D{
		{Key: "stream", Value: r.Stream},
		{Key: "by", Value: r.By},
		{Key: "at", Value: time.Now()},
		{Key: "from", Value: r.From},
		{Key: "partitions", Value: r.To},
		{Key: "checkpoints", Value: d.raw(ctx, scope.Names())},
	})
	if err != nil {
		return plan, fmt.Errorf("keep the checkpoints of %q: %w", r.Stream, err)
	}
	if len(plan.Created) > 0 {
		if err := d.create(ctx, scope, plan, r); err != nil {
			return plan, err
		}
	}
	if err := d.retire(ctx, scope, plan.Retired); err != nil {
		return plan, err
	}
	return plan, d.SettleRetired(ctx, r.Stream)
}

// raw are checkpoints as they are stored.
func (d *Database) raw(ctx context.Context, names []string) []bson.Raw {
	var found []bson.Raw
	_ = all(ctx, d, checkpoints, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: names}}}}, &found) // for people; what counts is carried over
	return found
}

// create makes the records of the new checkpoints and then these: a record that
// is not confirmed may have no checkpoint yet.
func (d *Database) create(ctx context.Context, scope Scope, plan Carried, r Repartition) error {
	start, err := scope.LeastFar(r.From)
	if err != nil {
		return err
	}
	place := setPlace(start.Place, bson.E{Key: "term", Value: plan.Term}, bson.E{Key: "saves", Value: int64(0)}, bson.E{Key: "options", Value: start.Options}, bson.E{Key: "retired", Value: nil},
		bson.E{Key: "claim", Value: rand.Text()}) // beside a record, which an earlier release did not make
	old := scope.Records[start.Stream]
	var records, fresh []mongo.WriteModel
	for _, name := range plan.Created {
		document := streamOf(checkpoint.Record{
			Stream: name, Whole: r.Stream, Lease: r.Lease, Partitions: r.To, Term: plan.Term, Source: old.Source, Settings: old.Settings, Options: start.Options,
			Began: checkpoint.Beginning{How: fmt.Sprintf("repartition from %d", r.From), Place: start.Place, Present: -1, At: time.Now().UTC(), By: r.By},
		})
		records = append(records, mongo.NewUpdateOneModel().SetUpsert(true).SetFilter(byStream(name)).SetUpdate(replaceRecord(document)))
		fresh = append(fresh, mongo.NewUpdateOneModel().SetUpsert(true).SetFilter(byStream(name)).SetUpdate(place))
	}
	if _, err := d.db.Collection(streams).BulkWrite(ctx, records); err != nil {
		return fmt.Errorf("make the records of %q: %w", plan.Created, err)
	}
	if _, err := d.db.Collection(checkpoints).BulkWrite(ctx, fresh); err != nil {
		return fmt.Errorf("make the checkpoints of %q: %w", plan.Created, err)
	}
	return nil
}

// replaceRecord is the update that leaves of a record only what was purged by it.
func replaceRecord(by streamDocument) mongo.Pipeline {
	purged := bson.D{{Key: "purged", Value: "$purged"}, {Key: "purgedAt", Value: "$purgedAt"}}
	return mongo.Pipeline{{{Key: "$replaceWith", Value: bson.D{{Key: "$mergeObjects", Value: bson.A{purged, bson.D{{Key: "$literal", Value: by}}}}}}}}
}

// retire takes checkpoints out of use. They stay, each under a term above the one
// that it has by then: who still publishes by one of them, or began to since the
// scope was looked at, is refused its next save. The records come first, so that no
// term is given out in between.
func (d *Database) retire(ctx context.Context, scope Scope, names []string) error {
	if len(names) == 0 {
		return nil
	}
	which := bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: names}}}}
	retire := mongo.Pipeline{{{Key: "$set", Value: bson.D{
		{Key: "term", Value: bson.D{{Key: "$add", Value: bson.A{bson.D{{Key: "$max", Value: bson.A{"$term", scope.Highest}}}, int64(1)}}}},
		{Key: "retired", Value: true},
	}}}}
	for _, collection := range []string{streams, checkpoints} {
		if _, err := d.db.Collection(collection).UpdateMany(ctx, which, retire); err != nil {
			return fmt.Errorf("retire %q in %s: %w", names, collection, err)
		}
	}
	return nil
}

// SettleRetired settles what was announced for checkpoints that are retired: no
// later term finds out what became of it.
func (d *Database) SettleRetired(ctx context.Context, whole string) error {
	var retired []checkpointDocument
	if err := all(ctx, d, checkpoints, bson.D{anyPartition("_id", whole), {Key: "retired", Value: true}}, &retired); err != nil {
		return fmt.Errorf("look for retired checkpoints of %q: %w", whole, err)
	}
	for _, document := range retired {
		if err := d.Settle(ctx, document.Stream, document.Moved, document.Term); err != nil {
			return err
		}
	}
	return nil
}
