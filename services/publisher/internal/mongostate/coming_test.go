package mongostate_test

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/testserver"
)

// TestKeptAside_WhatNeverCameIsNamedUntilTheCheckpointIsPastIt has a change that a
// publisher has named, and that is not there.
func TestKeptAside_WhatNeverCameIsNamedUntilTheCheckpointIsPastIt(t *testing.T) {
	t.Parallel()
	at := func(seconds uint32) contract.Position { return contract.StreamPosition(seconds, 1, "82") }
	copied := contract.SnapshotPosition(7, 1, 5)
	start := checkpoint.ClusterTime{Seconds: 7, Increment: 1}
	for name, tt := range map[string]struct {
		named contract.Position
		place checkpoint.Place
		want  bool
	}{
		"before it":                     {at(7), checkpoint.Place{Position: at(6)}, true},
		"at it":                         {at(7), checkpoint.Place{Position: at(7)}, false},
		"behind it":                     {at(7), checkpoint.Place{Position: at(8)}, false},
		"at a start of before":          {at(7), checkpoint.Place{Start: checkpoint.ClusterTime{Seconds: 7}}, true},
		"no place":                      {at(7), checkpoint.Place{}, true},
		"in the copy that it is of":     {copied, checkpoint.Place{Start: start, Copy: &checkpoint.Copy{}}, true},
		"that copy is complete":         {copied, checkpoint.Place{Start: start, Copy: &checkpoint.Copy{Done: true}}, false},
		"where it stands was not named": {"", checkpoint.Place{Position: at(8)}, true},
	} {
		kept := mongostate.KeptAside{Note: &checkpoint.Aside{Coming: []checkpoint.Expected{{ID: "a", At: tt.named}}}, Place: tt.place}
		if got := len(kept.Settled().Coming) == 1; got != tt.want {
			t.Errorf("%s: named is %v, want %v", name, got, tt.want)
		}
	}
}

// TestKeptAside_TheLastThatWereNamedAreKept has more that were named and never came than
// are kept, and one that came.
func TestKeptAside_TheLastThatWereNamedAreKept(t *testing.T) {
	t.Parallel()
	const bound = 1000
	note := &checkpoint.Aside{Count: 1}
	for n := range bound + 3 {
		note.Coming = append(note.Coming, checkpoint.Expected{ID: strconv.Itoa(n), At: contract.StreamPosition(7, uint32(n), "82")})
	}
	kept := mongostate.KeptAside{Note: note, Found: 1, Arrived: []string{"0"}}
	settled := kept.Settled()
	if want := note.Coming[3:]; settled.Count != 2 || !slices.Equal(settled.Coming, want) {
		t.Errorf("%d are counted and %d named, the first %+v, want 2, and the last %d", settled.Count, len(settled.Coming), settled.Coming[0], bound)
	}
}

// TestKeptAside_WhatComesMeanwhileIsNotCountedAndNamed has a publisher that was frozen
// park what it had named, while a leader looks at what there is of its partition, which
// is retired.
func TestKeptAside_WhatComesMeanwhileIsNotCountedAndNamed(t *testing.T) {
	t.Parallel()
	name := testserver.Name(t)
	direct := mongostate.New(testserver.Mongo(t), name).Parked("orders")
	changes := testserver.Mongo(t).Database(name).Collection("parked_changes")
	fillParked(t, direct, 1)
	id := listed(t, direct)[0]
	late, err := changes.FindOneAndDelete(t.Context(), bson.D{}).Raw()
	if err != nil {
		t.Fatal(err)
	}
	var looks atomic.Int64
	client, err := mongo.Connect(options.Client().ApplyURI(testserver.Get(t).MongoURI).SetMonitor(&event.CommandMonitor{
		Started: func(ctx context.Context, e *event.CommandStartedEvent) {
			if in, _ := e.Command.Lookup(e.CommandName).StringValueOK(); in != "parked_changes" || looks.Add(1) != 2 {
				return
			}
			if _, err := changes.InsertOne(context.WithoutCancel(ctx), late); err != nil {
				t.Error(err)
			}
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	_, err = kept(t, name).InsertOne(t.Context(), bson.D{
		{Key: "_id", Value: "orders"},
		{Key: "retired", Value: true},
		{Key: "parked", Value: bson.D{{Key: "count", Value: int64(0)}, {Key: "coming", Value: bson.A{bson.D{{Key: "id", Value: id}}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	store := mongostate.New(client, name).Parked("orders")
	for look := range 3 {
		all, err := store.KeptAside(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("kept aside is %+v, %v, want that of one partition", all, err)
		}
		if all[0].Missing() != 0 {
			t.Errorf("look %d finds %+v, want nothing missing", look, all[0])
		}
		if err := store.Settle(t.Context(), all[0]); err != nil {
			t.Fatal(err)
		}
	}
}
