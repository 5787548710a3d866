// Package mongostate keeps the publisher's state in a MongoDB database: the
// lease, the checkpoint, and the changes that were parked. It adapts the driver
// to the interfaces of packages lease, checkpoint and relay, and decides nothing.
//
// Every read and write asks for a majority explicitly. The deployment's default
// may be less (with an arbiter it is w:1), and a lease or checkpoint that is
// rolled back would be held, or moved, by two.
package mongostate

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// Names of the collections in the state database.
const (
	leases      = "leader_leases"
	checkpoints = "resume_tokens"
	parked      = "parked_changes"
	instances   = "publisher_instances"
	replaced    = "replaced_checkpoints"
	gaps        = "stream_gaps"
	moves       = "checkpoint_log"
)

// leaseTidySeconds is how long a lease record stays after its end. Nothing
// rests on it: a record that is over is as good as none.
const leaseTidySeconds = 24 * 60 * 60

// Database is the state database.
type Database struct {
	db *mongo.Database
}

// New returns the state database of the given name.
func New(client *mongo.Client, name string) *Database {
	return &Database{db: client.Database(name, options.Database().
		SetReadConcern(readconcern.Majority()).
		SetWriteConcern(writeconcern.Majority()).
		SetReadPreference(readpref.Primary()))}
}

// EnsureIndexes creates the indexes that keep the database tidy. None is needed
// for correctness, so a role that may not create them loses nothing but tidiness.
func (d *Database) EnsureIndexes(ctx context.Context) error {
	_, leaseErr := d.db.Collection(leases).Indexes().CreateOne(ctx, mongo.IndexModel{
		Keys:    bson.D{{Key: "expiresAt", Value: 1}},
		Options: options.Index().SetExpireAfterSeconds(leaseTidySeconds),
	})
	_, parkedErr := d.db.Collection(parked).Indexes().CreateOne(ctx, mongo.IndexModel{
		Keys: bson.D{{Key: "stream", Value: 1}, {Key: "position", Value: 1}},
	})
	_, instanceErr := d.db.Collection(instances).Indexes().CreateOne(ctx, mongo.IndexModel{
		Keys:    bson.D{{Key: "expiresAt", Value: 1}},
		Options: options.Index().SetExpireAfterSeconds(leaseTidySeconds),
	})
	if err := errors.Join(leaseErr, parkedErr, instanceErr); err != nil {
		return fmt.Errorf("create indexes in %q: %w", d.db.Name(), err)
	}
	return nil
}
