package witness

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const (
	// probePause is how long a probe waits after an answer.
	probePause = 100 * time.Millisecond
	// answerTime is how long servers that are not in trouble take at most to answer.
	answerTime = 500 * time.Millisecond
)

// Probe asks the servers again and again until ctx ends, which is no error, and calls late
// for each time in which they left a request without an answer for longer than they should:
// another fault did it, or they lacked a processor. What somebody else has asked for, or
// sent, waited as well then. Servers that are away are not late, nor is a request that fails
// at once.
func (w *Witness) Probe(ctx context.Context, late func(from, to time.Time)) error {
	client, err := mongo.Connect(probing(w.endpoints.MongoURI))
	if err != nil {
		return fmt.Errorf("connect to MongoDB: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		_ = client.Disconnect(ctx)
	}()
	probe(ctx, func() { _ = client.Database("admin").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Err() }, late)
	return nil
}

// probing are the options of a client that does not wait for servers that are away.
func probing(uri string) *options.ClientOptions {
	return options.Client().ApplyURI(uri).SetServerSelectionTimeout(probePause)
}

// probe asks until ctx ends. Servers that are late with an answer may have been so since the
// one before.
func probe(ctx context.Context, ask func(), late func(from, to time.Time)) {
	answered := time.Now()
	for {
		asked := time.Now()
		ask()
		if ctx.Err() != nil {
			return
		}
		before := answered
		if answered = time.Now(); answered.Sub(asked) > answerTime {
			late(before, answered)
		}
		pause := time.NewTimer(probePause)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}
