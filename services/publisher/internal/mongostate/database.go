// Package mongostate keeps the publisher's state in a MongoDB database: the
// lease, the checkpoint, the record of each stream, and the changes that were parked. It adapts the driver
// to the interfaces of packages lease, checkpoint and relay, and decides nothing.
//
// Every read and write asks for a majority explicitly. The deployment's default
// may be less (with an arbiter it is w:1), and a lease or checkpoint that is
// rolled back would be held, or moved, by two.
package mongostate

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"changerelay/services/publisher/internal/majority"
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
	streams     = "streams"
	resends     = "resends"
)

// leaseTidySeconds is how long a lease record stays after its end. Nothing
// rests on it: a record that is over is as good as none.
const leaseTidySeconds = 24 * 60 * 60

// Database is the state database.
type Database struct {
	db *mongo.Database
}

// MajorityLag is majority.Lag.
func (d *Database) MajorityLag(ctx context.Context, most time.Duration) (time.Duration, error) {
	return majority.Lag(ctx, d.db.Client(), most)
}

// New returns the state database of the given name.
func New(client *mongo.Client, name string) *Database {
	return &Database{db: client.Database(name, options.Database().
		SetReadConcern(readconcern.Majority()).
		SetWriteConcern(writeconcern.Majority()).
		SetReadPreference(readpref.Primary()))}
}
