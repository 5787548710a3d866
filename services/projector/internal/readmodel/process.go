package readmodel

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// How deaths are noticed.
const (
	// beatEvery is how often a process says that it lives.
	beatEvery = 10 * time.Second
	// deadAfter is how long a process that says nothing counts as alive.
	deadAfter = 45 * time.Second
	// carefulTime is how long the others are careful after a death.
	carefulTime = 10 * time.Minute
)

// Process is this process among the projectors of a read database. One document
// for each says that it lives, or that it has stopped as asked; a process that
// does neither has died.
type Process struct {
	store        *Store
	id, instance string
	careful      atomic.Bool
}

var _ delivery.Care = (*Process)(nil)

// Process returns this process. id is unique; instance is what a successor of
// it is called too, where the platform gives it the same name again.
func (s *Store) Process(id, instance string) *Process {
	return &Process{store: s, id: id, instance: instance}
}

// Run says that the process lives until ctx ends, and then that it has stopped.
// A beat that fails is made up for by the next. The first Beat comes before Run.
func (p *Process) Run(ctx context.Context) error {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return p.Stop(context.WithoutCancel(ctx))
		case <-ticker.C:
		}
		attempt, cancel := context.WithTimeout(ctx, beatEvery)
		_ = p.Beat(attempt, false)
		cancel()
	}
}

// Beat says that the process lives, and looks for others that have died. The
// first one takes a live process of the same instance for dead.
func (p *Process) Beat(ctx context.Context, first bool) error {
	processes := p.store.own(projection.Processes)
	var me struct {
		HeartbeatAt time.Time `bson:"heartbeatAt"`
	}
	err := processes.FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: p.id}},
		mongo.Pipeline{{{Key: "$set", Value: bson.D{{Key: "instance", Value: bson.D{{Key: "$literal", Value: p.instance}}}, {Key: "heartbeatAt", Value: "$$NOW"}}}}, {{Key: "$unset", Value: "diedAt"}}},
		options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)).Decode(&me)
	if err != nil {
		return fmt.Errorf("say that the process lives: %w", err)
	}
	silent := bson.D{{Key: "heartbeatAt", Value: bson.D{{Key: "$lt", Value: me.HeartbeatAt.Add(-deadAfter)}}}}
	dead := bson.D{
		{Key: "_id", Value: bson.D{{Key: "$ne", Value: p.id}}},
		{Key: "stoppedAt", Value: nil},
		{Key: "diedAt", Value: nil},
	}
	if first {
		dead = append(dead, bson.E{Key: "$or", Value: bson.A{silent, bson.D{{Key: "instance", Value: p.instance}}}})
	} else {
		dead = append(dead, silent...)
	}
	if _, err := processes.UpdateMany(ctx, dead, bson.D{{Key: "$set", Value: bson.D{{Key: "diedAt", Value: me.HeartbeatAt}}}}); err != nil {
		return fmt.Errorf("look for processes that have died: %w", err)
	}
	err = processes.FindOne(ctx, bson.D{{Key: "diedAt", Value: bson.D{{Key: "$gt", Value: me.HeartbeatAt.Add(-carefulTime)}}}}).Err()
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return fmt.Errorf("look for processes that have died: %w", err)
	}
	p.careful.Store(err == nil)
	return nil
}

// Stop says that the process stops as asked.
func (p *Process) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := p.store.own(projection.Processes).UpdateOne(ctx, bson.D{{Key: "_id", Value: p.id}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "stoppedAt", Value: time.Now()}}}})
	if err != nil {
		return fmt.Errorf("say that the process stops: %w", err)
	}
	return nil
}

// Careful implements delivery.Care.
func (p *Process) Careful() bool { return p.careful.Load() }

// attempts is an aggregate's document: which processes have which of its
// messages in hand. What is done is taken out, so it stays small however often
// the aggregate has had its turn.
type attempts struct {
	InHand []attempt `bson:"inHand"`
}

type attempt struct {
	MessageID string `bson:"messageId"`
	Process   string `bson:"process"`
}

// Suspects implements delivery.Care.
func (p *Process) Suspects(ctx context.Context, aggregate string) (map[string]int, error) {
	var noted attempts
	err := p.store.own(projection.Attempts).FindOne(ctx, bson.D{{Key: "_id", Value: aggregate}}).Decode(&noted)
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return nil, fmt.Errorf("look up attempts at aggregate %q: %w", aggregate, err)
	}
	processes := map[string]bson.A{}
	for _, a := range noted.InHand {
		processes[a.MessageID] = append(processes[a.MessageID], a.Process)
	}
	suspects := map[string]int{}
	for message, ids := range processes {
		n, err := p.store.own(projection.Processes).CountDocuments(ctx, bson.D{
			{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}},
			{Key: "diedAt", Value: bson.D{{Key: "$ne", Value: nil}}},
		})
		if err != nil {
			return nil, fmt.Errorf("count the dead processes: %w", err)
		}
		if n > 0 {
			suspects[message] = int(n)
		}
	}
	return suspects, nil
}

// Note implements delivery.Care.
func (p *Process) Note(ctx context.Context, aggregate, messageID string) error {
	return p.note(ctx, aggregate, bson.E{Key: "$addToSet", Value: bson.D{{Key: "inHand", Value: attempt{messageID, p.id}}}})
}

// Clear implements delivery.Care.
func (p *Process) Clear(ctx context.Context, aggregate, messageID string) error {
	return p.note(ctx, aggregate, bson.E{Key: "$pull", Value: bson.D{{Key: "inHand", Value: bson.D{{Key: "messageId", Value: messageID}}}}})
}

func (p *Process) note(ctx context.Context, aggregate string, change bson.E) error {
	_, err := p.store.own(projection.Attempts).UpdateOne(ctx, bson.D{{Key: "_id", Value: aggregate}},
		bson.D{change, {Key: "$set", Value: bson.D{{Key: "at", Value: time.Now()}}}}, options.UpdateOne().SetUpsert(true))
	if err != nil {
		return fmt.Errorf("note an attempt at aggregate %q: %w", aggregate, err)
	}
	return nil
}
