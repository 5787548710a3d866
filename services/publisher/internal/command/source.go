package command

import (
	"context"
	"fmt"

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
