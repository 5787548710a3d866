package mongostate_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/testserver"
)

// TestKeptAside_WhatIsPurgedMeanwhileIsNotLost has a purge come between what is noted
// and what is found.
func TestKeptAside_WhatIsPurgedMeanwhileIsNotLost(t *testing.T) {
	t.Parallel()
	name := testserver.Name(t)
	direct := testserver.Mongo(t).Database(name)
	state := purgedMeanwhile(t, name, func(ctx context.Context) {
		_, counted := direct.Collection("resume_tokens").UpdateByID(ctx, "orders", bson.D{{Key: "$inc", Value: bson.D{{Key: "purged", Value: int64(1)}}}})
		_, removed := direct.Collection("parked_changes").DeleteOne(ctx, bson.D{})
		if counted != nil || removed != nil {
			t.Errorf("purge: %v, %v", counted, removed)
		}
	})
	kept, err := state.Parked("orders").KeptAsideOf(t.Context(), "orders")
	if err != nil || len(kept) != 1 || kept[0].Missing() != 0 || kept[0].Found != 2 {
		t.Errorf("kept aside is %+v, %v, want two found, and none missing", kept, err)
	}
}

// TestKeptAside_WhatIsPurgedByNameMeanwhileIsNotLost has a purge between the names and
// what is there of them.
func TestKeptAside_WhatIsPurgedByNameMeanwhileIsNotLost(t *testing.T) {
	t.Parallel()
	name := testserver.Name(t)
	direct := mongostate.New(testserver.Mongo(t), name).Parked("orders")
	var id string
	state := purgedMeanwhile(t, name, func(ctx context.Context) {
		claimed, err := direct.Claim(ctx, id, "an operator", time.Minute)
		if err == nil {
			err = direct.Resolve(ctx, claimed, mongostate.Replayed, "")
		}
		if err == nil {
			_, err = direct.Purge(ctx, time.Now().Add(time.Hour), "an operator", false)
		}
		if err != nil {
			t.Error(err)
		}
	})
	id = listed(t, direct)[0]
	kept, err := state.Parked("orders").KeptAsideOf(t.Context(), "orders")
	if err != nil || len(kept) != 1 || len(kept[0].Gone) != 0 || kept[0].Unnamed || kept[0].Found != 2 {
		t.Errorf("kept aside is %+v, %v, want two found and named, and none gone", kept, err)
	}
}

// TestKeptAside_WhatAPurgeHasCountedOutMeanwhileIsNotPutBack has a purge count a change
// out in between, and not remove it yet.
func TestKeptAside_WhatAPurgeHasCountedOutMeanwhileIsNotPutBack(t *testing.T) {
	t.Parallel()
	name := testserver.Name(t)
	checkpoints := kept(t, name)
	state := purgedMeanwhile(t, name, func(ctx context.Context) {
		_, err := checkpoints.UpdateByID(ctx, "orders", bson.D{
			{Key: "$inc", Value: bson.D{{Key: "purged", Value: int64(1)}}},
			{Key: "$currentDate", Value: bson.D{{Key: "purgedAt", Value: true}}},
		})
		if err != nil {
			t.Error(err)
		}
	})
	kept, err := state.Parked("orders").KeptAsideOf(t.Context(), "orders")
	if err != nil || len(kept) != 1 || kept[0].Found != 3 || kept[0].Returned() || kept[0].Settled().Count != 3 {
		t.Errorf("kept aside is %+v, %v, want three found, and counted as before", kept, err)
	}
}

// purgedMeanwhile is a stream that has three changes parked, and noted. When what there
// is of them is first counted, a purge comes right before.
func purgedMeanwhile(t *testing.T, name string, purge func(context.Context)) *mongostate.Database {
	t.Helper()
	var once sync.Once
	client, err := mongo.Connect(options.Client().ApplyURI(testserver.Get(t).MongoURI).SetMonitor(&event.CommandMonitor{
		Started: func(ctx context.Context, e *event.CommandStartedEvent) {
			if e.CommandName == "aggregate" && e.Command.Lookup("aggregate").StringValue() == "parked_changes" {
				once.Do(func() { purge(context.WithoutCancel(ctx)) })
			}
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	state := mongostate.New(client, name)
	claimed, err := checkpoint.Claim(t.Context(), state.Checkpoints(), "orders", checkpoint.Claimant{Owner: "a", Create: true})
	if err != nil {
		t.Fatal(err)
	}
	fillParked(t, state.Parked("orders"), 3)
	names := checkpoint.Naming{All: &checkpoint.Names{IDs: listed(t, state.Parked("orders"))}}
	if err := claimed.Count(t.Context(), checkpoint.Aside{Count: 3}, names); err != nil {
		t.Fatal(err)
	}
	return state
}
