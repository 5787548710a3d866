package traffic

import (
	"context"
	"fmt"
	"io"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/source"
)

// closeTimeout bounds the closing of a connection.
const closeTimeout = 5 * time.Second

// Write writes events until ctx ends, which is no error. Each run has orders of
// its own, so that one can follow another.
func Write(ctx context.Context, cfg Config, out io.Writer) error {
	client, err := mongo.Connect(options.Client().ApplyURI(cfg.MongoURI))
	if err != nil {
		return fmt.Errorf("connect to MongoDB: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		_ = client.Disconnect(ctx)
	}()
	names, written := cluster.DefaultNames(), 0
	run := time.Now().UTC().Format("20060102-150405.000")
	next := load.Generated(orders.NewGenerator(cfg.Seed, cfg.Aggregates))
	fmt.Fprintf(out, "writing %d events a second to %s.%s, orders %s/…\n", cfg.Rate, names.SourceDatabase, names.SourceCollection, run)
	l := load.Load{
		To: source.NewWriter(client, names.SourceDatabase, names.SourceCollection), Rate: cfg.Rate,
		Next: func() (orders.Event, bool) {
			e, more := next()
			e.Aggregate = run + "/" + e.Aggregate
			return e, more
		},
		Wrote: func(events []orders.Event) { written += len(events) },
	}
	err = l.Run(ctx, nil)
	fmt.Fprintf(out, "wrote %d events\n", written)
	if ctx.Err() != nil {
		return nil
	}
	return err
}
