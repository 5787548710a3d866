package mongostate

import (
	"context"
	"fmt"
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
	instances  *mongo.Collection
	leases     *mongo.Collection
}

// Roster returns the roster of the instances that share the partitions.
func (d *Database) Roster(group string, leaseNames []string) *Roster {
	return &Roster{group: group, leaseNames: leaseNames, instances: d.db.Collection(instances), leases: d.db.Collection(leases)}
}

// Announce implements partition.Roster.
func (r *Roster) Announce(ctx context.Context, member string, during time.Duration) error {
	_, err := r.instances.UpdateOne(ctx, bson.D{{Key: "_id", Value: r.id(member)}}, mongo.Pipeline{{{Key: "$set", Value: bson.D{
		{Key: "group", Value: literal(r.group)},
		{Key: "member", Value: literal(member)},
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
	_, err := r.instances.UpdateByID(ctx, r.id(member), mongo.Pipeline{{{Key: "$set", Value: bson.D{{Key: "expiresAt", Value: "$$NOW"}}}}})
	return err
}

// Picture implements partition.Roster.
func (r *Roster) Picture(ctx context.Context) (partition.Picture, error) {
	members, err := texts(ctx, r.instances, append(bson.D{{Key: "group", Value: r.group}}, live()), "_id", "member")
	if err != nil {
		return partition.Picture{}, fmt.Errorf("read who is there: %w", err)
	}
	held, err := texts(ctx, r.leases, append(bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: r.leaseNames}}}}, live()), "_id", "leaderId")
	if err != nil {
		return partition.Picture{}, fmt.Errorf("read who holds what: %w", err)
	}
	picture := partition.Picture{Holders: make([]string, len(r.leaseNames))}
	for _, member := range members {
		picture.Members = append(picture.Members, member)
	}
	for i, name := range r.leaseNames {
		picture.Holders[i] = held[name]
	}
	return picture, nil
}

// live is the filter of what is not over by the server's clock.
func live() bson.E {
	return bson.E{Key: "$expr", Value: bson.D{{Key: "$gt", Value: bson.A{"$expiresAt", "$$NOW"}}}}
}

// texts reads a field of the documents that match, by another.
func texts(ctx context.Context, from *mongo.Collection, filter bson.D, by, field string) (map[string]string, error) {
	cursor, err := from.Find(ctx, filter)
	if err != nil {
		return nil, err
	}
	var documents []bson.Raw
	if err := cursor.All(ctx, &documents); err != nil {
		return nil, err
	}
	found := make(map[string]string, len(documents))
	for _, document := range documents {
		key, _ := document.Lookup(by).StringValueOK()
		found[key], _ = document.Lookup(field).StringValueOK()
	}
	return found, nil
}

func (r *Roster) id(member string) string { return r.group + "/" + member }
