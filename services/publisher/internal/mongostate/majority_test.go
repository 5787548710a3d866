package mongostate_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/testserver"
)

func TestMajority_EveryCommandOnTheStateAsksForAMajority(t *testing.T) {
	t.Parallel()
	var sent commands
	client, err := mongo.Connect(options.Client().ApplyURI(testserver.Get(t).MongoURI).
		SetMonitor(&event.CommandMonitor{Started: sent.started}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	state := mongostate.New(client, testserver.Name(t))
	ctx, records, checkpoints, streams := t.Context(), state.Lease("orders"), state.Checkpoints(), state.Streams()
	holder := lease.Holder{ID: "a", Incarnation: "1", Tenure: 1}
	change := relay.Change{Raw: marshal(t, bson.D{}), Token: marshal(t, bson.D{}), Position: "p"}
	err = errors.Join(
		second(records.Read(ctx)),
		second(records.Take(ctx, lease.Claim{Holder: holder, TTL: time.Hour})),
		second(records.Renew(ctx, holder, time.Hour)),
		records.Halt(ctx, holder, 1, "why"),
		records.Confirm(ctx, holder, 1),
		second(records.Release(ctx, holder)),
		second(checkpoints.Claim(ctx, "orders", checkpoint.Claimant{Owner: "a", Create: true})),
		second(checkpoints.Pin(ctx, "orders", 1, checkpoint.Place{Start: checkpoint.ClusterTime{Seconds: 1}})),
		checkpoints.Save(ctx, "orders", 1, checkpoint.Progress{Number: 1, Place: checkpoint.Place{Token: marshal(t, bson.D{}), Position: "p"}}),
		second(checkpoints.Read(ctx, "orders")),
		second(streams.Open(ctx, checkpoint.Record{Stream: "orders", Whole: "orders", Partitions: 1})),
		second(streams.Raise(ctx, "orders", 4)),
		streams.Confirm(ctx, "orders", 5, mongostate.Kept{Lease: "lease"}),
		streams.Halt(ctx, "orders", 9, "why"),
		streams.Stop(ctx, "orders", checkpoint.ClusterTime{Seconds: 1}),
		second(state.MoveCheckpoint(ctx, mongostate.Move{Stream: "orders", To: &checkpoint.Place{Anew: true}})),
		second(state.Scope(ctx, "orders", "lease")),
		second(state.Gaps("orders").Counts(ctx)),
		second(state.Gaps("orders").Any(ctx)),
		second(state.Repartition(ctx, mongostate.Repartition{Stream: "orders", Lease: "lease", From: 1, To: 1}, false)),
		second(state.Parked("orders").Has(ctx, "id")),
		second(state.Parked("orders").Park(ctx, mongostate.Reader{Partition: "orders"}, relay.Parked{Change: change})),
		second(state.Parked("orders").Unclaimed(ctx, []string{})),
		state.Parked("orders").Adopt(ctx, "orders", "id"),
		second(state.Parked("orders").KeptAside(ctx)),
	)
	if err != nil {
		t.Fatal(err)
	}
	sent.mu.Lock()
	defer sent.mu.Unlock()
	for _, command := range sent.seen {
		name := command.Index(0).Key()
		concern := command.Lookup("writeConcern", "w")
		if slices.Contains([]string{"find", "aggregate", "count"}, name) {
			concern = command.Lookup("readConcern", "level")
		}
		if text, ok := concern.StringValueOK(); !ok || text != "majority" {
			t.Errorf("%s asks for %s, want majority: %s", name, concern, command)
		}
	}
}

// commands are what a client has sent to its databases.
type commands struct {
	mu   sync.Mutex
	seen []bson.Raw // guarded by mu
}

func (c *commands) started(_ context.Context, e *event.CommandStartedEvent) {
	if e.DatabaseName == "admin" {
		return // what the driver asks for itself
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, slices.Clone(e.Command))
}

func second[T any](_ T, err error) error { return err }
