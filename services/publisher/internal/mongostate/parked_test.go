package mongostate_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/relay/relaytest"
	"changerelay/services/publisher/internal/testserver"
)

// fillParked parks count changes, from 1 on.
func fillParked(t *testing.T, store *mongostate.Parked, count int) {
	t.Helper()
	raw, err := bson.Marshal(bson.D{{Key: "operationType", Value: "insert"}})
	if err != nil {
		t.Fatal(err)
	}
	for n := range count {
		change := relaytest.Change(n+1, "a")
		change.Raw, change.Token = raw, raw
		if err := store.Park(t.Context(), relay.Parked{Change: change, Reason: "has no type", Term: 1}); err != nil {
			t.Fatal(err)
		}
	}
}

func listed(t *testing.T, store *mongostate.Parked) []string {
	t.Helper()
	var ids []string
	if err := store.Each(t.Context(), true, func(change mongostate.ParkedChange) error {
		ids = append(ids, change.ID)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestParked_AListKeepsNothingOpenOnTheServer may take longer than a server
// keeps a cursor that nobody reads from.
func TestParked_AListKeepsNothingOpenOnTheServer(t *testing.T) {
	t.Parallel()
	var more atomic.Int64
	client, err := mongo.Connect(options.Client().ApplyURI(testserver.Get(t).MongoURI).SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			if e.CommandName == "getMore" {
				more.Add(1)
			}
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	store := mongostate.New(client, testserver.Name(t)).Parked("orders")
	const count = 250
	fillParked(t, store, count)
	var found []string
	err = store.Each(t.Context(), false, func(change mongostate.ParkedChange) error {
		found = append(found, change.Position)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(slices.Compact(slices.Clone(found))) != count || !slices.IsSorted(found) {
		t.Errorf("listed %d changes, want %d, each once and in order", len(found), count)
	}
	if got := more.Load(); got != 0 {
		t.Errorf("%d reads from a cursor that was kept open, want none", got)
	}
}

func TestParked_APurgeRemovesOnlyWhatWasDealtWithLongAgo(t *testing.T) {
	t.Parallel()
	store := mongostate.New(testserver.Mongo(t), testserver.Name(t)).Parked("orders")
	fillParked(t, store, 4)
	ids := listed(t, store)
	resolve := func(id string, as mongostate.Resolution) {
		claimed, err := store.Claim(t.Context(), id, "an operator", time.Minute)
		if err == nil {
			err = store.Resolve(t.Context(), claimed, as, "")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	resolve(ids[0], mongostate.Replayed)
	resolve(ids[1], mongostate.Discarded)
	claimed, err := store.Claim(t.Context(), ids[2], "an operator", time.Minute)
	if err == nil {
		err = store.Unclaim(t.Context(), claimed, "no connection")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		before time.Time
		dry    bool
		want   int64
		left   int
	}{
		{time.Now().Add(-time.Hour), false, 0, 4},
		{time.Now().Add(time.Hour), true, 2, 4},
		{time.Now().Add(time.Hour), false, 2, 2},
		{time.Now().Add(time.Hour), false, 0, 2},
	} {
		got, err := store.Purge(t.Context(), tt.before, "an operator", tt.dry)
		if err != nil || got != tt.want {
			t.Errorf("Purge before %s, dry %v = %d, %v, want %d", tt.before, tt.dry, got, err, tt.want)
		}
		if left := len(listed(t, store)); left != tt.left {
			t.Errorf("%d are left, want %d", left, tt.left)
		}
	}
}

// TestParked_APurgeCountsFromTheLastAction has an attempt long before what dealt with
// the change.
func TestParked_APurgeCountsFromTheLastAction(t *testing.T) {
	t.Parallel()
	for _, as := range []mongostate.Resolution{mongostate.Replayed, mongostate.Discarded} {
		client, name := testserver.Mongo(t), testserver.Name(t)
		store := mongostate.New(client, name).Parked("orders")
		fillParked(t, store, 1)
		id := listed(t, store)[0]
		failed, err := store.Claim(t.Context(), id, "an operator", time.Minute)
		if err == nil {
			err = store.Unclaim(t.Context(), failed, "no connection")
		}
		if err != nil {
			t.Fatal(err)
		}
		claimed, err := store.Claim(t.Context(), id, "an operator", time.Minute)
		if err == nil {
			err = store.Resolve(t.Context(), claimed, as, "")
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Database(name).Collection("parked_changes").UpdateByID(t.Context(), id,
			bson.D{{Key: "$set", Value: bson.D{{Key: "actions.0.at", Value: time.Now().AddDate(-1, 0, 0)}}}})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := store.Purge(t.Context(), time.Now().Add(-time.Hour), "an operator", false); err != nil || got != 0 {
			t.Errorf("Purge of what was %s just now = %d, %v, want it left", as, got, err)
		}
	}
}
