package mongostate_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
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
		if _, err := store.Park(t.Context(), mongostate.Reader{Partition: "orders"}, relay.Parked{Change: change, Reason: "has no type", Term: 1}); err != nil {
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

// TestParked_APurgeCountsOutWhatItRemoves has another purge come between its count and
// what it removes.
func TestParked_APurgeCountsOutWhatItRemoves(t *testing.T) {
	t.Parallel()
	name := testserver.Name(t)
	all := testserver.Mongo(t).Database(name).Collection("parked_changes")
	var between sync.Once
	client, err := mongo.Connect(options.Client().ApplyURI(testserver.Get(t).MongoURI).SetMonitor(&event.CommandMonitor{
		Started: func(ctx context.Context, e *event.CommandStartedEvent) {
			if e.CommandName != "delete" {
				return
			}
			between.Do(func() {
				if _, err := all.DeleteOne(context.WithoutCancel(ctx), bson.D{}); err != nil {
					t.Error(err)
				}
			})
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	state := mongostate.New(client, name)
	if _, err := checkpoint.Claim(t.Context(), state.Checkpoints(), "orders", checkpoint.Claimant{Owner: "a", Create: true}); err != nil {
		t.Fatal(err)
	}
	store := state.Parked("orders")
	fillParked(t, store, 3)
	for _, id := range listed(t, store) {
		claimed, err := store.Claim(t.Context(), id, "an operator", time.Minute)
		if err == nil {
			err = store.Resolve(t.Context(), claimed, mongostate.Replayed, "")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, err := store.Purge(t.Context(), time.Now().Add(time.Hour), "an operator", false); err != nil || got != 2 {
		t.Fatalf("Purge = %d, %v, want the two that were left", got, err)
	}
	kept, err := store.KeptAside(t.Context())
	if err != nil || len(kept) != 1 || kept[0].Purged != 2 {
		t.Errorf("kept aside is %+v, %v, want the two counted out", kept, err)
	}
}

// TestParked_APurgeLeavesWhatIsDealtWithMeanwhile has an operator deal with a change again
// after a purge has found it, and before it is removed.
func TestParked_APurgeLeavesWhatIsDealtWithMeanwhile(t *testing.T) {
	t.Parallel()
	name := testserver.Name(t)
	all := testserver.Mongo(t).Database(name).Collection("parked_changes")
	var between sync.Once
	client, err := mongo.Connect(options.Client().ApplyURI(testserver.Get(t).MongoURI).SetMonitor(&event.CommandMonitor{
		Started: func(ctx context.Context, e *event.CommandStartedEvent) {
			if e.CommandName != "delete" {
				return
			}
			between.Do(func() {
				later := bson.D{{Key: "$push", Value: bson.D{{Key: "actions", Value: bson.D{{Key: "at", Value: time.Now().AddDate(1, 0, 0)}}}}}}
				if _, err := all.UpdateOne(context.WithoutCancel(ctx), bson.D{}, later); err != nil {
					t.Error(err)
				}
			})
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	store := mongostate.New(client, name).Parked("orders")
	fillParked(t, store, 2)
	for _, id := range listed(t, store) {
		claimed, err := store.Claim(t.Context(), id, "an operator", time.Minute)
		if err == nil {
			err = store.Resolve(t.Context(), claimed, mongostate.Replayed, "")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := store.Purge(t.Context(), time.Now().Add(time.Hour), "an operator", false)
	if left := len(listed(t, store)); err != nil || got != 1 || left != 1 {
		t.Errorf("Purge = %d, %v, and leaves %d, want one purged, and one left", got, err, left)
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

// TestPark_OpensWhatWasDealtWithBeforeItWasRead has a change parked again after it was
// replayed, by who has read it before that, or since.
func TestPark_OpensWhatWasDealtWithBeforeItWasRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		term  int64
		since time.Duration // since the replay
		want  int
	}{
		"the same term":                      {term: 4, since: -time.Hour},
		"an earlier one that was frozen":     {term: 3, since: -time.Hour},
		"a later one":                        {term: 5, since: time.Hour, want: 1},
		"a later one, by a clock behind":     {term: 5, since: -time.Hour, want: 1},
		"a later one where terms began anew": {term: 1, since: time.Hour, want: 1},
	} {
		state := fresh(t)
		store := state.Parked("orders")
		change := relay.Change{Position: contract.StreamPosition(7, 1, "8207"), Token: marshal(t, bson.D{}), Raw: marshal(t, bson.D{})}
		park := func(term int64, since time.Time) {
			t.Helper()
			_, err := store.Park(t.Context(), mongostate.Reader{Partition: "orders", Since: since}, relay.Parked{Change: change, Reason: "has no type", Term: term})
			if err != nil {
				t.Fatal(err)
			}
		}
		park(2, time.Now())
		park(4, time.Now())
		claimed, err := store.Claim(t.Context(), store.ID(change), "an operator", time.Minute)
		if err == nil {
			err = store.Resolve(t.Context(), claimed, mongostate.Replayed, "")
		}
		if err != nil {
			t.Fatal(err)
		}
		park(tt.term, time.Now().Add(tt.since))
		park(tt.term, time.Now().Add(tt.since))
		if n, err := store.Count(t.Context()); err != nil || n != int64(tt.want) {
			t.Errorf("%s: %d are parked, %v, want %d", name, n, err, tt.want)
		}
		found, err := store.Get(t.Context(), store.ID(change))
		if err != nil || len(found.Actions) != 1+tt.want || found.Actions[0].Action != string(mongostate.Replayed) {
			t.Errorf("%s: what was done with it is %+v, %v, want %d", name, found.Actions, err, 1+tt.want)
		}
	}
}
