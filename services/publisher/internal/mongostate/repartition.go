package mongostate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
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

// CheckPartitions returns an error when there are checkpoints of the stream
// with another number of partitions.
func (d *Database) CheckPartitions(ctx context.Context, stream string, of int) error {
	found, err := d.partitioned(ctx, stream)
	if err != nil {
		return fmt.Errorf("look for checkpoints of %q: %w", stream, err)
	}
	names := PartitionNames(stream, of)
	for _, document := range found {
		if id, _ := document.Lookup("_id").StringValueOK(); !slices.Contains(names, id) {
			return fmt.Errorf("%w: there is %q, and PARTITIONS is %d; stop all publishers of the stream, run publisher repartition, start them again",
				ErrPartitioned, id, of)
		}
	}
	return nil
}

// partitioned returns the stream's checkpoints, whatever number of partitions
// they are of.
func (d *Database) partitioned(ctx context.Context, stream string) ([]bson.Raw, error) {
	cursor, err := d.db.Collection(checkpoints).Find(ctx, bson.D{{Key: "$or", Value: bson.A{
		bson.D{{Key: "_id", Value: stream}},
		bson.D{{Key: "_id", Value: bson.Regex{Pattern: "^" + regexp.QuoteMeta(stream) + `-[0-9]+of[0-9]+$`}}},
	}}})
	if err != nil {
		return nil, err
	}
	var found []bson.Raw
	return found, cursor.All(ctx, &found)
}

// Repartition replaces the stream's checkpoints by those of another number of
// partitions, each at the place of the one that was least far: what the others
// had sent beyond it is sent again, with the same ids. It refuses while a lease
// of any number of partitions is live, and keeps what it replaced. What stopped
// it in the middle does not keep it from being called again.
func (d *Database) Repartition(ctx context.Context, stream, lease string, of int, by string) error {
	if err := d.refuseWhileHeld(ctx, lease); err != nil {
		return err
	}
	found, err := d.partitioned(ctx, stream)
	if err != nil {
		return fmt.Errorf("look for checkpoints of %q: %w", stream, err)
	}
	names := PartitionNames(stream, of)
	var old []bson.Raw
	term := int64(0)
	for _, document := range found {
		id, _ := document.Lookup("_id").StringValueOK()
		if !slices.Contains(names, id) {
			old = append(old, document)
		}
		was, _ := document.Lookup("term").AsInt64OK()
		term = max(term, was)
	}
	if len(old) == 0 {
		return nil // new, or done already
	}
	start, err := leastFar(old)
	if err != nil {
		return err
	}
	_, err = d.db.Collection(replaced).InsertOne(ctx, bson.D{
		{Key: "stream", Value: stream}, {Key: "by", Value: by}, {Key: "partitions", Value: of}, {Key: "checkpoints", Value: old},
	})
	if err != nil {
		return fmt.Errorf("keep the checkpoints of %q: %w", stream, err)
	}
	return d.replace(ctx, start, names, term, old)
}

// refuseWhileHeld refuses while a lease of the name, or of a partition of it, is
// live.
func (d *Database) refuseWhileHeld(ctx context.Context, lease string) error {
	held, err := texts(ctx, d.db.Collection(leases), bson.D{{Key: "$or", Value: bson.A{
		bson.D{{Key: "_id", Value: lease}},
		bson.D{{Key: "_id", Value: bson.Regex{Pattern: "^" + regexp.QuoteMeta(lease) + `-[0-9]+of[0-9]+$`}}},
	}}, live()}, "_id", "leaderId")
	if err != nil {
		return fmt.Errorf("look for live leases of %q: %w", lease, err)
	}
	for name, holder := range held {
		return fmt.Errorf("lease %q is held by %q: stop all publishers of the stream first", name, holder)
	}
	return nil
}

// leastFar returns the checkpoint that is behind all others.
func leastFar(old []bson.Raw) (bson.Raw, error) {
	for _, document := range old {
		if copying, found := document.Lookup("copy").DocumentOK(); found {
			if done, _ := copying.Lookup("done").BooleanOK(); !done {
				id, _ := document.Lookup("_id").StringValueOK()
				return nil, fmt.Errorf("checkpoint %q is in the middle of a copy of the source: let it be finished first", id)
			}
		}
	}
	return slices.MinFunc(old, func(a, b bson.Raw) int { return cmp.Compare(placeOf(a), placeOf(b)) }), nil
}

// placeOf returns a checkpoint's position; before its first save the one at
// which it starts, which sorts below any position of that time.
func placeOf(checkpoint bson.Raw) string {
	if position, found := checkpoint.Lookup("position").StringValueOK(); found {
		return strings.ToLower(position)
	}
	seconds, increment, _ := checkpoint.Lookup("startAt").TimestampOK()
	return fmt.Sprintf("%08x%08x.", seconds, increment)
}

// replace writes a checkpoint at the place of start under each name, with a term
// above all others, and removes the old ones.
func (d *Database) replace(ctx context.Context, start bson.Raw, names []string, term int64, old []bson.Raw) error {
	collection := d.db.Collection(checkpoints)
	place := bson.D{{Key: "term", Value: term + 1}, {Key: "saves", Value: int64(0)}}
	for _, field := range []string{"token", "position", "startAt", "options", "copy"} {
		if value := start.Lookup(field); !value.IsZero() {
			place = append(place, bson.E{Key: field, Value: value})
		}
	}
	var writes []mongo.WriteModel
	for _, name := range names {
		writes = append(writes, mongo.NewReplaceOneModel().SetUpsert(true).
			SetFilter(bson.D{{Key: "_id", Value: name}}).SetReplacement(place))
	}
	for _, document := range old {
		writes = append(writes, mongo.NewDeleteOneModel().SetFilter(bson.D{{Key: "_id", Value: document.Lookup("_id")}}))
	}
	if _, err := collection.BulkWrite(ctx, writes, options.BulkWrite().SetOrdered(true)); err != nil {
		return fmt.Errorf("replace checkpoints by %q: %w", names, err)
	}
	return nil
}
