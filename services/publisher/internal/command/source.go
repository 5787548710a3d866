package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/config"
)

// connectSource returns a client of the source, and what frees it.
func connectSource(ctx context.Context, c config.Config) (client *mongo.Client, disconnect func(), err error) {
	client, err = config.ConnectWithin(c.MongoURI, config.CommandSelectTimeout)
	if err != nil {
		return nil, nil, fmt.Errorf("prepare the source: %w", err)
	}
	return client, func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), config.CloseTimeout)
		defer cancel()
		_ = client.Disconnect(closing) // the process ends anyway
	}, nil
}

// sourceClock is the source's time.
func sourceClock(ctx context.Context, c config.Config) (checkpoint.ClusterTime, error) {
	client, disconnect, err := connectSource(ctx, c)
	if err != nil {
		return checkpoint.ClusterTime{}, err
	}
	defer disconnect()
	return changestream.Latest(ctx, client)
}

// tryPosition asks whether the source goes on from a place by its token, for as long as
// the source needs to find it. No answer is no refusal.
func tryPosition(ctx context.Context, call Call, source changestream.Source, to checkpoint.Place) error {
	err := source.CheckAfter(ctx, to.Token, func(took time.Duration) {
		fmt.Fprintf(call.Stderr, "the source has looked for the position in its operation log for %s; nothing is changed before it has found it\n",
			took.Round(time.Second))
	})
	at := to.Time().Time().Format(time.RFC3339)
	if _, refused := errors.AsType[*changestream.HaltError](err); refused {
		return fmt.Errorf("the source does not go on from the position: take it whole as checkpoint show prints it, "+
			"or give its time, %s, from which ON_HISTORY_LOST decides (%w)", at, err)
	}
	if err != nil {
		return fmt.Errorf("whether the source goes on from the position is not known, and nothing is changed: try again, or give its time, %s (%w)", at, err)
	}
	return nil
}
