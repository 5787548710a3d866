package projectorbench

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"golang.org/x/sync/errgroup"
)

// writing is how the bare driver stores a batch of a session.
type writing struct {
	collection string
	// folds says that a batch is one guarded upsert, as the projector has it where all
	// messages change one document; else each message is.
	folds bool
	// transactions says that a batch is written in one.
	transactions bool
}

// rawWrites stores the messages with the bare driver: an ordered bulk for each batch of
// a session.
func (b bench) rawWrites(ctx context.Context, how writing) (time.Duration, error) {
	client, err := mongo.Connect(options.Client().ApplyURI(b.endpoints.MongoURI).SetMaxPoolSize(holders + 4))
	if err != nil {
		return 0, fmt.Errorf("open MongoDB: %w", err)
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	to := client.Database(b.stage.Names(topic).ReadModelDatabase, options.Database().SetWriteConcern(writeconcern.Majority())).Collection(how.collection)
	sessions := make(chan int)
	group, gctx := errgroup.WithContext(ctx)
	began := time.Now()
	for range holders {
		group.Go(func() error {
			for session := range sessions {
				if err := writeSession(gctx, client, to, session, b.shape.Messages, how); err != nil {
					return err
				}
			}
			return nil
		})
	}
	group.Go(func() error {
		defer close(sessions)
		for session := range b.shape.Sessions {
			select {
			case sessions <- session:
			case <-gctx.Done():
				return context.Cause(gctx)
			}
		}
		return nil
	})
	err = group.Wait()
	return time.Since(began), err
}

func writeSession(ctx context.Context, client *mongo.Client, to *mongo.Collection, session, messages int, how writing) error {
	for first := 1; first <= messages; first += batchSize {
		var models []mongo.WriteModel
		last := min(messages, first+batchSize-1)
		for version := first; version <= last; version++ {
			if how.folds && version < last {
				continue
			}
			models = append(models, guarded(session, version))
		}
		bulk := func(ctx context.Context) error {
			_, err := to.BulkWrite(ctx, models)
			return err
		}
		var err error
		if how.transactions {
			err = client.UseSession(ctx, func(ctx context.Context) error {
				_, err := mongo.SessionFromContext(ctx).WithTransaction(ctx, func(ctx context.Context) (any, error) { return nil, bulk(ctx) },
					options.Transaction().SetWriteConcern(writeconcern.Majority()))
				return err
			})
		} else {
			err = bulk(ctx)
		}
		if err != nil {
			return fmt.Errorf("write session %d: %w", session, err)
		}
	}
	return nil
}

// guarded is the upsert of a message as the projector has it before folding.
func guarded(session, version int) mongo.WriteModel {
	sequence := fmt.Sprintf("%019d", version)
	return mongo.NewUpdateOneModel().SetUpsert(true).
		SetFilter(bson.D{{Key: "_id", Value: sessionID(session)}, {Key: "_relay.sequence", Value: bson.D{{Key: "$lt", Value: sequence}}}}).
		SetUpdate(bson.D{{Key: "$set", Value: bson.D{
			{Key: "data", Value: bson.D{{Key: "n", Value: version}, {Key: "text", Value: filler}}},
			{Key: "_relay", Value: bson.D{{Key: "sequence", Value: sequence}, {Key: "aggregateVersion", Value: int64(version)}, {Key: "updatedAt", Value: time.Now()}}},
		}}})
}
