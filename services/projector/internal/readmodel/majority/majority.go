// Package majority asks a replica set how far a majority of its members is
// behind. A write is acknowledged when a majority has it.
package majority

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

const (
	// askTime bounds asking a server why it has not answered in time.
	askTime = 300 * time.Millisecond
	// lookInterval is the time between two looks whether a majority has a write.
	lookInterval = 50 * time.Millisecond
	// writeConcernFailed is the server's code for a write that no majority had in time.
	writeConcernFailed = 64
)

// Explain adds to the error of a write that was not confirmed in time how far a
// majority is behind, where it is. The write may be done all the same.
func Explain(ctx context.Context, client *mongo.Client, err error) error {
	answer, ok := errors.AsType[mongo.ServerError](err)
	if !mongo.IsTimeout(err) && (!ok || !answer.HasErrorCode(writeConcernFailed)) {
		return err
	}
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	last, has, askErr := ask(asking, client)
	if askErr != nil || last.T <= has.T {
		return err
	}
	return fmt.Errorf("%w: a majority of the replica set has only what was written until %s, %s before its last write: a member is down or lags",
		err, time.Unix(int64(has.T), 0).UTC().Format(time.TimeOnly), time.Duration(last.T-has.T)*time.Second)
}

// Lag is how long a majority takes until it has the last write that there is, and most
// where it takes longer. Nothing is behind where the server does not tell.
func Lag(ctx context.Context, client *mongo.Client, most time.Duration) (time.Duration, error) {
	began := time.Now()
	wanted, has, err := ask(ctx, client)
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	for err == nil && has.Before(wanted) {
		if time.Since(began) >= most {
			return most, nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
		_, has, err = ask(ctx, client)
	}
	return time.Since(began), err
}

// ask is when the last write was, and the last that a majority has.
func ask(ctx context.Context, client *mongo.Client) (last, has bson.Timestamp, err error) {
	hello, err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Raw()
	if err != nil {
		return last, has, fmt.Errorf("ask how far a majority is behind: %w", err)
	}
	for path, into := range map[string]*bson.Timestamp{"opTime": &last, "majorityOpTime": &has} {
		into.T, into.I, _ = hello.Lookup("lastWrite", path, "ts").TimestampOK()
	}
	return last, has, nil
}
