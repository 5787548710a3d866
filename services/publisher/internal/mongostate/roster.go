package mongostate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/partition"
)

// Roster implements partition.Roster for the partitions with the given leases.
type Roster struct {
	group      string
	leaseNames []string
	state      *Database
}

// Roster returns the roster of the instances that share the partitions.
func (d *Database) Roster(group string, leaseNames []string) *Roster {
	return &Roster{group: group, leaseNames: leaseNames, state: d}
}

// Announce implements partition.Roster.
func (r *Roster) Announce(ctx context.Context, member string, aside []int, during time.Duration) error {
	_, err := r.state.db.Collection(instances).UpdateOne(ctx, bson.D{{Key: "_id", Value: r.id(member)}}, mongo.Pipeline{{{Key: "$set", Value: bson.D{
		{Key: "group", Value: literal(r.group)},
		{Key: "member", Value: literal(member)},
		{Key: "aside", Value: bson.D{{Key: "$literal", Value: aside}}},
		{Key: "expiresAt", Value: fromNow(during)},
	}}}}, options.UpdateOne().SetUpsert(true))
	if err != nil && !mongo.IsDuplicateKeyError(err) {
		return fmt.Errorf("announce %q: %w", member, err)
	}
	return nil
}

// Withdraw implements partition.Roster.
func (r *Roster) Withdraw(ctx context.Context, member string) error {
	// Not removed: the role need not be allowed to. The index does it.
	_, err := r.state.db.Collection(instances).UpdateByID(ctx, r.id(member), mongo.Pipeline{{{Key: "$set", Value: bson.D{{Key: "expiresAt", Value: "$$NOW"}}}}})
	return err
}

// Picture implements partition.Roster.
func (r *Roster) Picture(ctx context.Context) (partition.Picture, error) {
	var members []instanceDocument
	if err := all(ctx, r.state, instances, append(bson.D{{Key: "group", Value: r.group}}, live()), &members); err != nil {
		return partition.Picture{}, fmt.Errorf("read who is there: %w", err)
	}
	var held []Holder
	if err := all(ctx, r.state, leases, append(bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: r.leaseNames}}}}, live()), &held); err != nil {
		return partition.Picture{}, fmt.Errorf("read who holds what: %w", err)
	}
	picture := partition.Picture{Aside: map[string][]int{}, Holders: make([]string, len(r.leaseNames))}
	for _, one := range members {
		picture.Members = append(picture.Members, one.Member)
		picture.Aside[one.Member] = one.Aside
	}
	for _, lease := range held {
		picture.Holders[slices.Index(r.leaseNames, lease.Lease)] = lease.ID
	}
	return picture, nil
}

type instanceDocument struct {
	Member string `bson:"member"`
	Aside  []int  `bson:"aside"`
}

// live is the filter of what is not over by the server's clock.
func live() bson.E {
	return bson.E{Key: "$expr", Value: bson.D{{Key: "$gt", Value: bson.A{"$expiresAt", "$$NOW"}}}}
}

func (r *Roster) id(member string) string { return r.group + "/" + member }
