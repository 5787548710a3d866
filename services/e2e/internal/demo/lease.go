package demo

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
)

// Collections of the publishers' state database, and the projectors' own in the
// read model's.
const (
	leases         = "leader_leases"
	parkedChanges  = "parked_changes"
	parkedMessages = "parked_messages"
)

// leaseRest returns how long the lease still runs, on the clock of the server
// that judges it.
func leaseRest(ctx context.Context, state *mongo.Database, name string) (time.Duration, error) {
	var hello struct {
		LocalTime time.Time `bson:"localTime"`
	}
	if err := state.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello); err != nil {
		return 0, fmt.Errorf("read the server's clock: %w", err)
	}
	var lease struct {
		ExpiresAt time.Time `bson:"expiresAt"`
	}
	majority := options.Collection().SetReadConcern(readconcern.Majority())
	if err := state.Collection(leases, majority).FindOne(ctx, bson.D{{Key: "_id", Value: name}}).Decode(&lease); err != nil {
		return 0, fmt.Errorf("read lease %q: %w", name, err)
	}
	return lease.ExpiresAt.Sub(hello.LocalTime), nil
}
