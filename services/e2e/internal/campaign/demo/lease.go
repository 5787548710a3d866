package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
)

// leases is the collection of leases in the publishers' state database.
const leases = "leader_leases"

// leaseRest returns how long the lease still runs, on the clock of the server
// that judges it.
func leaseRest(ctx context.Context, state *mongo.Database, name string) (time.Duration, error) {
	now, err := serverTime(func(command bson.D) *mongo.SingleResult { return state.RunCommand(ctx, command) })
	if err != nil {
		return 0, err
	}
	var lease struct {
		ExpiresAt time.Time `bson:"expiresAt"`
	}
	majority := options.Collection().SetReadConcern(readconcern.Majority())
	if err := state.Collection(leases, majority).FindOne(ctx, bson.D{{Key: "_id", Value: name}}).Decode(&lease); err != nil {
		return 0, fmt.Errorf("read lease %q: %w", name, err)
	}
	return lease.ExpiresAt.Sub(now), nil
}

// commandNotFound is the code of a server that does not know a command.
const commandNotFound = 59

// serverTime reads the server's clock. Servers before 4.4.2 know hello by its old
// name alone.
func serverTime(run func(command bson.D) *mongo.SingleResult) (time.Time, error) {
	var said struct {
		LocalTime time.Time `bson:"localTime"`
	}
	err := run(bson.D{{Key: "hello", Value: 1}}).Decode(&said)
	if refused, ok := errors.AsType[mongo.CommandError](err); ok && refused.Code == commandNotFound {
		err = run(bson.D{{Key: "isMaster", Value: 1}}).Decode(&said)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("read the server's clock: %w", err)
	}
	return said.LocalTime, nil
}
