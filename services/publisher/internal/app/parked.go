package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/redact"
)

// ListParked writes the stream's parked changes to out, oldest first, as one
// JSON object a line.
func ListParked(ctx context.Context, config Config, out io.Writer) (err error) {
	secrets := redact.New(config.StateMongoURI.Reveal())
	client, err := connectMongo(config.StateMongoURI)
	if err != nil {
		return fmt.Errorf("prepare the state database: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		_ = client.Disconnect(closing) // the process ends anyway
	}()
	encoder := json.NewEncoder(out)
	each := mongostate.New(client, config.StateDatabase).Parked(config.StreamName).
		Each(ctx, func(change mongostate.ParkedChange) error { return encoder.Encode(change) })
	if each != nil {
		return errors.New(secrets.Text(each.Error()))
	}
	return nil
}
