package projectorbench

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/Azure/go-amqp"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"golang.org/x/sync/errgroup"
)

// bareSessions takes sessions over go-amqp with as little as the protocol needs,
// writes what they hold and completes it: no renewal, no claim, nothing is
// looked after. It is for servers that ask for nothing of it, as the sandbox.
func (b bench) bareSessions(ctx context.Context, subscription string) (time.Duration, error) {
	client, err := mongo.Connect(options.Client().ApplyURI(b.endpoints.MongoURI).SetMaxPoolSize(holders + 4))
	if err != nil {
		return 0, fmt.Errorf("open MongoDB: %w", err)
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	to := client.Database(b.stage.Names(topic).ReadModelDatabase, options.Database().SetWriteConcern(writeconcern.Majority())).Collection("bare")
	host := regexp.MustCompile(`sb://([^;/]+)`).FindStringSubmatch(b.endpoints.ServiceBus)
	if host == nil {
		return 0, errors.New("the connection string has no endpoint")
	}
	conn, err := amqp.Dial(ctx, "amqp://"+host[1], &amqp.ConnOptions{SASLType: amqp.SASLTypeAnonymous()})
	if err != nil {
		return 0, fmt.Errorf("connect to Service Bus: %w", err)
	}
	defer func() { _ = conn.Close() }()

	ctx, done := context.WithCancel(ctx)
	defer done()
	var settled, took atomic.Int64
	began := time.Now()
	group, gctx := errgroup.WithContext(ctx)
	for range holders {
		group.Go(func() error {
			lane, err := conn.NewSession(gctx, nil)
			if err != nil {
				return fmt.Errorf("begin: %w", err)
			}
			for gctx.Err() == nil {
				n, err := bareSession(gctx, lane, b.topic+"/Subscriptions/"+subscription, to)
				if err != nil && ctx.Err() == nil {
					return err
				}
				if settled.Add(int64(n)) >= int64(b.shape.total()) {
					took.CompareAndSwap(0, int64(time.Since(began)))
					done()
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	if took.Load() == 0 {
		return 0, fmt.Errorf("receive with bare AMQP: %w", context.Cause(ctx))
	}
	return time.Duration(took.Load()), nil
}

// bareSession takes the next session and empties it.
func bareSession(ctx context.Context, lane *amqp.Session, from string, to *mongo.Collection) (settled int, err error) {
	link, err := lane.NewReceiver(ctx, from, &amqp.ReceiverOptions{
		Credit:         -1,
		SettlementMode: amqp.ReceiverSettleModeSecond.Ptr(),
		Filters:        []amqp.LinkFilter{amqp.NewLinkFilter("com.microsoft:session-filter", 0x137000000c, nil)},
		Properties:     map[string]any{"com.microsoft:timeout": uint32(5000)},
	})
	if e, ok := errors.AsType[*amqp.Error](err); ok && e.Condition == "com.microsoft:timeout" {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("attach: %w", err)
	}
	defer func() { _ = link.Close(context.WithoutCancel(ctx)) }()
	for {
		messages, err := bareReceive(ctx, link)
		if err != nil {
			return settled, err
		}
		var models []mongo.WriteModel
		for _, m := range messages {
			models = append(models, guarded(int(m.Annotations["x-opt-sequence-number"].(int64)), 1))
		}
		if len(models) > 0 {
			if _, err := to.BulkWrite(ctx, models); err != nil {
				return settled, fmt.Errorf("write: %w", err)
			}
		}
		group, gctx := errgroup.WithContext(ctx)
		for _, m := range messages {
			group.Go(func() error { return link.AcceptMessage(gctx, m) })
		}
		if err := group.Wait(); err != nil {
			return settled, fmt.Errorf("complete: %w", err)
		}
		settled += len(messages)
		if len(messages) < batchSize {
			return settled, nil
		}
	}
}

// bareReceive takes what comes until nothing does for a moment.
func bareReceive(ctx context.Context, link *amqp.Receiver) (messages []*amqp.Message, err error) {
	if err := link.IssueCredit(batchSize); err != nil {
		return nil, fmt.Errorf("give credit: %w", err)
	}
	wait := 5 * time.Second
	for len(messages) < batchSize {
		attempt, cancel := context.WithTimeout(ctx, wait)
		m, err := link.Receive(attempt, nil)
		cancel()
		if err != nil && attempt.Err() == nil {
			return nil, fmt.Errorf("receive: %w", err)
		}
		if err != nil {
			return messages, nil
		}
		messages, wait = append(messages, m), linger
	}
	return messages, nil
}
