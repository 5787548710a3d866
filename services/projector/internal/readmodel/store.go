package readmodel

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// Store is a read database.
type Store struct {
	db           *mongo.Database
	subscription string
}

var (
	_ delivery.Store            = (*Store)(nil)
	_ delivery.Parking          = (*Store)(nil)
	_ delivery.HaltedAggregates = (*Store)(nil)
)

// New returns the store in a database. subscription is noted with parked messages.
func New(client *mongo.Client, database, subscription string) *Store {
	return &Store{
		db: client.Database(database, options.Database().
			SetWriteConcern(writeconcern.Majority()).
			SetReadConcern(readconcern.Majority()).
			SetReadPreference(readpref.Primary())),
		subscription: subscription,
	}
}

// Ping asks the primary for an answer.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.db.Client().Ping(ctx, readpref.Primary()); err != nil {
		return fmt.Errorf("reach the read database: %w", err)
	}
	return nil
}

// Write implements delivery.Store. Writes keep their order within a collection.
func (s *Store) Write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	outcomes := make([]delivery.Outcome, len(writes))
	var done map[string]bool
	for i := range writes {
		collection := writes[i].Collection
		if done[collection] {
			continue
		}
		p := &pass{collection: s.db.Collection(collection), writes: writes, outcomes: outcomes}
		for k := i; k < len(writes); k++ {
			if writes[k].Collection == collection {
				p.pending = append(p.pending, k)
			}
		}
		if err := p.run(ctx); err != nil {
			return outcomes, err
		}
		if len(p.pending) == len(writes) {
			break
		}
		if done == nil {
			done = map[string]bool{}
		}
		done[collection] = true
	}
	return outcomes, nil
}

// pass stores the writes of one call to one collection.
type pass struct {
	collection *mongo.Collection
	writes     []projection.Write
	outcomes   []delivery.Outcome
	pending    []int // places in writes that are not stored yet, in order
}

// run sends bulk writes until nothing is pending. Each one settles at least one
// write, or ends it.
func (p *pass) run(ctx context.Context) error {
	for len(p.pending) > 0 {
		models := make([]mongo.WriteModel, len(p.pending))
		now := time.Now()
		for i, w := range p.pending {
			models[i] = model(&p.writes[w], now)
		}
		_, err := p.collection.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(true))
		if err == nil {
			p.settle(len(p.pending), delivery.Applied)
			return nil
		}
		if err := p.learn(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// settle gives the first n pending writes their outcome.
func (p *pass) settle(n int, outcome delivery.Outcome) {
	for _, w := range p.pending[:n] {
		p.outcomes[w] = outcome
	}
	p.pending = p.pending[n:]
}

// learn takes from a failed bulk write what it has stored, and decides about
// the write that it failed at. It returns nil when there is more to send.
func (p *pass) learn(ctx context.Context, err error) error {
	bulk, ok := errors.AsType[mongo.BulkWriteException](err)
	if !ok || len(bulk.WriteErrors) == 0 || bulk.WriteConcernError != nil {
		return p.blame(ctx, err)
	}
	failure := bulk.WriteErrors[0]
	if failure.Index < 0 || failure.Index >= len(p.pending) {
		return fmt.Errorf("write to %q: %w", p.collection.Name(), err)
	}
	p.settle(failure.Index, delivery.Applied)
	switch {
	case failure.Code == duplicateKey && !ofAnotherIndex(failure.WriteError):
		return p.confirm(ctx)
	case failure.Code == duplicateKey || classify(failure.Code) == data:
		return p.reject(failure.Message)
	}
	return fmt.Errorf("write to %q: %w", p.collection.Name(), err)
}

// confirm looks up whether the first pending write, which the unique _id
// refused, was applied before, and with it those behind it on the same document.
func (p *pass) confirm(ctx context.Context) error {
	first := &p.writes[p.pending[0]]
	var stored struct {
		Relay struct {
			Sequence *contract.Sequence `bson:"sequence"`
			EventID  string             `bson:"eventId"`
		} `bson:"_relay"`
	}
	err := p.collection.FindOne(ctx, bson.D{{Key: "_id", Value: first.ID}},
		options.FindOne().SetProjection(bson.D{{Key: "_relay.sequence", Value: 1}, {Key: "_relay.eventId", Value: 1}})).Decode(&stored)
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return fmt.Errorf("write to %q: the document is there, but a majority does not have it yet", p.collection.Name())
	case err != nil:
		return fmt.Errorf("read position in %q: %w", p.collection.Name(), err)
	case stored.Relay.Sequence == nil:
		return p.reject("the read document is not of the projector: it has no _relay.sequence")
	case *stored.Relay.Sequence < first.Event.Sequence:
		return fmt.Errorf("write to %q: another write got in between, or a majority does not have it yet", p.collection.Name())
	case twins(first.Event, *stored.Relay.Sequence, stored.Relay.EventID):
		return p.reject(fmt.Sprintf("two events of the aggregate have the sequence %s: this one, and %s, which is applied",
			first.Event.Sequence, stored.Relay.EventID))
	}
	pending := p.pending[:0:0]
	for _, w := range p.pending {
		write := &p.writes[w]
		if reflect.DeepEqual(write.ID, first.ID) && write.Event.Sequence <= *stored.Relay.Sequence &&
			!twins(write.Event, *stored.Relay.Sequence, stored.Relay.EventID) {
			p.outcomes[w] = delivery.Repeated
			continue
		}
		pending = append(pending, w)
	}
	p.pending = pending
	return nil
}

// twins tells whether another event with the same sequence is stored: then the
// source gave two events one version, and taking this one for a repeat would
// lose it in silence.
func twins(e *contract.Event, stored contract.Sequence, storedID string) bool {
	return e.Sequence == stored && e.ID != storedID
}

// blame finds the write that a failed command is about. Where the command was
// refused for what it says, its writes are sent one by one.
func (p *pass) blame(ctx context.Context, err error) error {
	if !isAboutData(err) {
		return fmt.Errorf("write to %q: %w", p.collection.Name(), err)
	}
	if len(p.pending) == 1 {
		return p.reject(err.Error())
	}
	rest := p.pending
	for i := range rest {
		p.pending = rest[i : i+1]
		if err := p.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) reject(reason string) error {
	return &delivery.RejectedError{Index: p.pending[0], Reason: reason}
}
