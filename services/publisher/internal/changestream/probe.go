package changestream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/checkpoint"
)

var errStandalone = errors.New("the server answers hello without a replica set name")

// Probe asks the source what it is. It returns a *HaltError when it is a
// standalone server or too old a one, and another error when it does not answer.
func Probe(ctx context.Context, client *mongo.Client) error {
	reply, err := hello(ctx, client)
	if halt := tooOld(err); halt != nil {
		return halt
	}
	if err != nil {
		return err
	}
	_, replicated := reply.Lookup("setName").StringValueOK()
	if !replicated && !isRouter(reply) {
		return &HaltError{Reason: NotReplicated, Err: errStandalone}
	}
	return nil
}

// isRouter reports whether a router of a sharded cluster has answered.
func isRouter(hello bson.Raw) bool {
	message, _ := hello.Lookup("msg").StringValueOK()
	return message == "isdbgrid"
}

// Now returns the cluster time right after the source's last operation: a
// stream that starts there sees every operation that comes later, and no other.
func Now(ctx context.Context, client *mongo.Client) (checkpoint.ClusterTime, error) {
	reply, err := hello(ctx, client)
	if err != nil {
		return checkpoint.ClusterTime{}, err
	}
	seconds, increment, ok := reply.Lookup("operationTime").TimestampOK()
	if !ok {
		return checkpoint.ClusterTime{}, errors.New("ask the source for its time: the answer has no operationTime")
	}
	return checkpoint.ClusterTime{Seconds: seconds, Increment: increment + 1}, nil
}

// Latest returns the latest cluster time that the source knows of: nothing that
// it has shown is at or after it. On an idle source that is the time of its last
// note, so the clock of a primary counts, too, to the second: what it writes from
// now on is not before that. The clock of a router does not, as it writes nothing.
func Latest(ctx context.Context, client *mongo.Client) (checkpoint.ClusterTime, error) {
	reply, err := hello(ctx, client)
	if err != nil {
		return checkpoint.ClusterTime{}, err
	}
	var latest checkpoint.ClusterTime
	for _, path := range [][]string{{"operationTime"}, {"$clusterTime", "clusterTime"}} {
		seconds, increment, _ := reply.Lookup(path...).TimestampOK()
		if at := (checkpoint.ClusterTime{Seconds: seconds, Increment: increment + 1}); latest.Before(at) {
			latest = at
		}
	}
	if latest.Seconds == 0 {
		return latest, errors.New("ask the source for its time: the answer has neither operationTime nor $clusterTime")
	}
	if clock := primaryClock(reply); latest.Before(clock) {
		latest = clock
	}
	return latest, nil
}

// primaryClock is the clock of the primary that has answered; zero where none has.
func primaryClock(reply bson.Raw) checkpoint.ClusterTime {
	primary, _ := reply.Lookup("isWritablePrimary").BooleanOK()
	if !primary {
		primary, _ = reply.Lookup("ismaster").BooleanOK()
	}
	_, replicated := reply.Lookup("setName").StringValueOK()
	now, ok := reply.Lookup("localTime").TimeOK()
	if !primary || !replicated || !ok {
		return checkpoint.ClusterTime{}
	}
	return checkpoint.ClusterTime{Seconds: uint32(now.Unix())}
}

// ClockAhead returns how far this machine's clock is ahead of the source's, give
// or take half the time that asking takes.
func ClockAhead(ctx context.Context, client *mongo.Client) (time.Duration, error) {
	asked := time.Now()
	reply, err := hello(ctx, client)
	if err != nil {
		return 0, err
	}
	took := time.Since(asked)
	theirs, ok := reply.Lookup("localTime").TimeOK()
	if !ok {
		return 0, errors.New("ask the source for its clock: the answer has no localTime")
	}
	return asked.Add(took / 2).Sub(theirs), nil
}

// commandNotFound is what a server answers that does not know a command.
const commandNotFound = 59

// hello asks the server what it is. Servers before 4.4.2 know the question by its
// older name only.
func hello(ctx context.Context, client *mongo.Client) (bson.Raw, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	admin := client.Database("admin")
	reply, err := admin.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Raw()
	if answer, ok := errors.AsType[mongo.ServerError](err); ok && answer.HasErrorCode(commandNotFound) {
		reply, err = admin.RunCommand(ctx, bson.D{{Key: "isMaster", Value: 1}}).Raw()
	}
	if err != nil {
		return nil, fmt.Errorf("say hello to the source: %w", err)
	}
	return reply, nil
}

// tooOld returns the *HaltError of an error with which the driver refuses a
// server for its age; nil for any other. The driver has no type for it.
func tooOld(err error) *HaltError {
	if err == nil || !strings.Contains(err.Error(), "version of the Go driver requires at least") {
		return nil
	}
	return &HaltError{Reason: TooOld, Err: err}
}
