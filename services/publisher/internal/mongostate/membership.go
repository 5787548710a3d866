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

// Membership implements partition.Membership for the partitions with the given leases.
type Membership struct {
	group      string
	leaseNames []string
	state      *Database
}

// Membership returns the membership of the instances that share the partitions.
func (d *Database) Membership(group string, leaseNames []string) *Membership {
	return &Membership{group: group, leaseNames: leaseNames, state: d}
}

// Announce implements partition.Membership.
func (m *Membership) Announce(ctx context.Context, member string, aside []int, during time.Duration) error {
	_, err := m.state.db.Collection(instances).UpdateOne(ctx, bson.D{{Key: "_id", Value: m.id(member)}}, mongo.Pipeline{{{Key: "$set", Value: bson.D{
		{Key: "group", Value: literal(m.group)},
		{Key: "member", Value: literal(member)},
		{Key: "aside", Value: bson.D{{Key: "$literal", Value: aside}}},
		{Key: "expiresAt", Value: fromNow(during)},
	}}}}, options.UpdateOne().SetUpsert(true))
	if err != nil && !mongo.IsDuplicateKeyError(err) {
		return fmt.Errorf("announce %q: %w", member, err)
	}
	return nil
}

// Withdraw implements partition.Membership.
func (m *Membership) Withdraw(ctx context.Context, member string) error {
	// Not removed: the role need not be allowed to. The index does it.
	_, err := m.state.db.Collection(instances).UpdateByID(ctx, m.id(member), mongo.Pipeline{{{Key: "$set", Value: bson.D{{Key: "expiresAt", Value: "$$NOW"}}}}})
	return err
}

// Snapshot implements partition.Membership.
func (m *Membership) Snapshot(ctx context.Context) (partition.Snapshot, error) {
	var members []instanceDocument
	if err := all(ctx, m.state, instances, append(bson.D{{Key: "group", Value: m.group}}, live()), &members); err != nil {
		return partition.Snapshot{}, fmt.Errorf("read who is there: %w", err)
	}
	var held []Holder
	if err := all(ctx, m.state, leases, append(bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: m.leaseNames}}}}, live()), &held); err != nil {
		return partition.Snapshot{}, fmt.Errorf("read who holds what: %w", err)
	}
	snapshot := partition.Snapshot{Aside: map[string][]int{}, Holders: make([]string, len(m.leaseNames))}
	for _, one := range members {
		snapshot.Members = append(snapshot.Members, one.Member)
		snapshot.Aside[one.Member] = one.Aside
	}
	for _, lease := range held {
		snapshot.Holders[slices.Index(m.leaseNames, lease.Lease)] = lease.ID
	}
	return snapshot, nil
}

type instanceDocument struct {
	Member string `bson:"member"`
	Aside  []int  `bson:"aside"`
}

// live is the filter of what is not over by the server's clock.
func live() bson.E {
	return bson.E{Key: "$expr", Value: bson.D{{Key: "$gt", Value: bson.A{"$expiresAt", "$$NOW"}}}}
}

func (m *Membership) id(member string) string { return m.group + "/" + member }
