package mongostate_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/testserver"
)

func fresh(t *testing.T) *mongostate.Database {
	t.Helper()
	return mongostate.New(testserver.Mongo(t), testserver.Name(t))
}

func TestParked_ItsClaimIsNeededToRecordWhatWasDone(t *testing.T) {
	t.Parallel()
	parked := fresh(t).Parked("orders")
	change := relay.Change{Raw: marshal(t, bson.D{}), Token: marshal(t, bson.D{}), Position: contract.StreamPosition(1, 1, "8201")}
	if _, err := parked.Park(t.Context(), mongostate.Reader{Partition: "orders"}, relay.Parked{Change: change, Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	var id string
	if err := parked.Each(t.Context(), false, func(c mongostate.ParkedChange) error { id = c.ID; return nil }); err != nil {
		t.Fatal(err)
	}
	slow, err := parked.Claim(t.Context(), id, "slow", 0) // over at once
	if err != nil {
		t.Fatal(err)
	}
	quick, err := parked.Claim(t.Context(), id, "quick", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := parked.Resolve(t.Context(), slow, mongostate.Discarded, ""); !errors.Is(err, mongostate.ErrClaimed) {
		t.Errorf("Resolve by a claim that is over = %v, want ErrClaimed", err)
	}
	if err := parked.Unclaim(t.Context(), slow, "late"); !errors.Is(err, mongostate.ErrClaimed) {
		t.Errorf("Unclaim by a claim that is over = %v, want ErrClaimed", err)
	}
	if err := parked.Resolve(t.Context(), quick, mongostate.Replayed, "sent"); err != nil {
		t.Errorf("Resolve by the claim = %v", err)
	}
	got, err := parked.Get(t.Context(), id)
	if err != nil || got.Resolved != mongostate.Replayed || len(got.Actions) != 1 || got.Actions[0].By != "quick" {
		t.Errorf("the change is %+v, %v, want it replayed by quick alone", got, err)
	}
}

func TestRepartition_WaitsForTheEndOfACopy(t *testing.T) {
	t.Parallel()
	state := fresh(t)
	recorded(t, state)
	claimed, err := checkpoint.Claim(t.Context(), state.Checkpoints(), "orders", checkpoint.Claimant{Owner: "a", Create: true})
	if err != nil {
		t.Fatal(err)
	}
	place := checkpoint.Place{Start: checkpoint.ClusterTime{Seconds: 5}, Copy: &checkpoint.Copy{Copied: 3}}
	if err := claimed.Pin(t.Context(), place); err != nil {
		t.Fatal(err)
	}
	if _, err := state.Repartition(t.Context(), to(2), false); err == nil || !strings.Contains(err.Error(), "in the middle of a copy") {
		t.Errorf("Repartition in the middle of a copy = %v, want it refused", err)
	}
	done := *place.Copy
	done.Done = true
	if err := claimed.Move(t.Context(), checkpoint.Place{Start: place.Start, Copy: &done}); err != nil {
		t.Fatal(err)
	}
	if _, err := state.Repartition(t.Context(), to(2), false); err != nil {
		t.Errorf("Repartition after the copy = %v", err)
	}
}

func TestScope_IsThatOfTheSettingsOrRefused(t *testing.T) {
	t.Parallel()
	state := fresh(t)
	_, err := state.Streams().Open(t.Context(), checkpoint.Record{
		Stream: "orders", Whole: "orders", Lease: "lease", Partitions: 1, Settings: checkpoint.Settings{"SERVICEBUS_TOPIC": "changes"},
	})
	if err != nil {
		t.Fatal(err)
	}
	scope, err := state.Scope(t.Context(), "orders", "lease")
	if err != nil {
		t.Fatal(err)
	}
	topic := func(name string) checkpoint.Settings { return checkpoint.Settings{"SERVICEBUS_TOPIC": name} }
	for _, tt := range []struct {
		said mongostate.Said
		want string // of the refusal; empty for none
	}{
		{mongostate.Said{Partitions: 1, Lease: "lease"}, ""},
		{mongostate.Said{Partitions: 1, Lease: "lease", Settings: topic("changes")}, ""},
		{mongostate.Said{Partitions: 1, Lease: "another"}, "LEASE_NAME=lease, not another"},
		{mongostate.Said{Partitions: 2, Lease: "lease"}, "PARTITIONS is 2"},
		{mongostate.Said{Partitions: 1, Lease: "lease", Settings: topic("others")}, `SERVICEBUS_TOPIC was "changes", now it is "others"`},
	} {
		err := scope.Check(tt.said)
		if (err == nil) != (tt.want == "") || err != nil && (!errors.Is(err, mongostate.ErrScope) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("Check(%+v) = %v, want %q", tt.said, err, tt.want)
		}
	}
	_, _, err = scope.Plan(mongostate.Repartition{Stream: "orders", Lease: "lease", To: 2, Settings: topic("others")})
	if !errors.Is(err, mongostate.ErrScope) {
		t.Errorf("Plan with other settings = %v, want it refused", err)
	}
}

func TestScope_ALeaseThatAnotherStreamHoldsIsRefused(t *testing.T) {
	t.Parallel()
	state := fresh(t)
	record := checkpoint.Record{Stream: "orders", Whole: "orders", Lease: "lease", Partitions: 1}
	if _, err := state.Streams().Open(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	claim := lease.Claim{Holder: lease.Holder{ID: "a", Incarnation: "1", Tenure: 1}, TTL: time.Hour, Subject: "others"}
	if _, err := state.Lease("lease").Take(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	scope, err := state.Scope(t.Context(), "orders", "lease")
	if err != nil {
		t.Fatal(err)
	}
	err = scope.Check(mongostate.Said{Partitions: 1, Lease: "lease"})
	if !errors.Is(err, mongostate.ErrScope) || !strings.Contains(err.Error(), `held by "a" for the stream "others"`) {
		t.Errorf("Check = %v, want that another stream holds the lease", err)
	}
}

func TestScope_AHaltInTheLeaseAloneLetsAnOperatorDecide(t *testing.T) {
	t.Parallel()
	state := fresh(t)
	holder := lease.Holder{ID: "a", Incarnation: "1", Tenure: 1}
	if _, err := state.Lease("lease").Take(t.Context(), lease.Claim{Holder: holder, TTL: time.Hour, Subject: "orders"}); err != nil {
		t.Fatal(err)
	}
	held := func() error {
		scope, err := state.Scope(t.Context(), "orders", "lease")
		if err != nil {
			t.Fatal(err)
		}
		return scope.Held(nil)
	}
	halt := func(by lease.Holder, seen int64) error {
		return state.Lease("lease").Halt(t.Context(), by, seen, "lost")
	}
	for _, step := range []struct {
		what string
		do   func() error
		held bool
	}{
		{"a halt of another process", func() error { return halt(lease.Holder{ID: "a", Incarnation: "2"}, 1) }, true},
		{"a halt of the holder", func() error { return halt(holder, 1) }, false},
		{"a claim", func() error { return state.Lease("lease").Confirm(t.Context(), holder, 2) }, true},
		{"a halt from before the claim", func() error { return halt(holder, 1) }, true},
		{"a halt in the term", func() error { return halt(holder, 2) }, false},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if err := held(); (err != nil) != step.held {
			t.Errorf("Held after %s = %v", step.what, err)
		}
	}
}

func TestStreams_ARetiredOneGivesOutNoTerm(t *testing.T) {
	t.Parallel()
	state := fresh(t)
	if _, err := state.Streams().Open(t.Context(), checkpoint.Record{Stream: "orders", Whole: "orders", Lease: "lease", Partitions: 1, Term: 3, Confirmed: 3}); err != nil {
		t.Fatal(err)
	}
	claimed, err := checkpoint.Claim(t.Context(), state.Checkpoints(), "orders", checkpoint.Claimant{Owner: "a", Above: 2, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := claimed.Pin(t.Context(), checkpoint.Place{Start: checkpoint.ClusterTime{Seconds: 5}}); err != nil {
		t.Fatal(err)
	}
	if _, err := state.Repartition(t.Context(), to(2), false); err != nil {
		t.Fatal(err)
	}
	if raised, err := state.Streams().Raise(t.Context(), "orders", 0); !errors.Is(err, mongostate.ErrNoStream) {
		t.Errorf("Raise of a retired stream = %+v, %v, want ErrNoStream", raised, err)
	}
}

func TestStreams_StandBeforeTheLatestChangeThatTheyStoodBefore(t *testing.T) {
	t.Parallel()
	streams := fresh(t).Streams()
	if _, err := streams.Open(t.Context(), checkpoint.Record{Stream: "orders", Whole: "orders", Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	later := checkpoint.ClusterTime{Seconds: 7, Increment: 2}
	for _, at := range []checkpoint.ClusterTime{{Seconds: 3}, later, {Seconds: 7, Increment: 1}} {
		if err := streams.Stop(t.Context(), "orders", at); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := streams.Read(t.Context(), "orders"); err != nil || got.Stopped != later {
		t.Errorf("the stream stands before %v, %v, want %v", got.Stopped, err, later)
	}
}

func TestLedger_WhatWasDiscardedKeepsNoStreamFromBeginning(t *testing.T) {
	t.Parallel()
	state := fresh(t)
	begun := func(entered mongostate.Gap) bool {
		t.Helper()
		if err := state.Gaps("orders").Enter(t.Context(), entered); err != nil {
			t.Fatal(err)
		}
		found, err := state.Ledger("orders", 2, 1).Any(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if begun(mongostate.Gap{Decision: string(mongostate.Discarded), Term: 1, At: time.Now()}) {
		t.Error("what was discarded tells that there was a stream")
	}
	if !begun(mongostate.Gap{Decision: mongostate.Void, Term: 1, At: time.Now()}) {
		t.Error("what was announced and not done does not tell that there was a stream")
	}
}

func TestStreams_AnEarlierTermKeepsNothingOverALaterOne(t *testing.T) {
	t.Parallel()
	streams := fresh(t).Streams()
	if _, err := streams.Open(t.Context(), checkpoint.Record{Stream: "orders", Whole: "orders", Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	later := mongostate.Kept{Lease: "later", Source: checkpoint.Origin{Set: "later"}}
	if err := streams.Confirm(t.Context(), "orders", 2, later); err != nil {
		t.Fatal(err)
	}
	earlier := mongostate.Kept{Lease: "earlier", Source: checkpoint.Origin{Set: "earlier"}}
	if err := streams.Confirm(t.Context(), "orders", 1, earlier); err != nil {
		t.Fatal(err)
	}
	if err := streams.Source(t.Context(), "orders", 1, earlier.Source); err != nil {
		t.Fatal(err)
	}
	if err := streams.Halt(t.Context(), "orders", 1, "earlier"); err != nil {
		t.Fatal(err)
	}
	if got, err := streams.Read(t.Context(), "orders"); err != nil || got.Confirmed != 2 || got.Lease != "later" || got.Source.Set != "later" || got.Halt != "" {
		t.Errorf("the record is %+v, %v, want that of the later term", got, err)
	}
}

// TestMove_ThatALeaderComesBetweenIsMadeAgainOrLeavesNoOpenGap has a leader claim
// the checkpoint each time that the move has entered what it passes over.
func TestMove_ThatALeaderComesBetweenIsMadeAgainOrLeavesNoOpenGap(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		times int64
		done  bool
	}{{1, true}, {4, true}, {1000, false}} {
		name := testserver.Name(t)
		state := mongostate.New(testserver.Mongo(t), name)
		if _, err := state.Streams().Open(t.Context(), checkpoint.Record{Stream: "orders", Whole: "orders", Partitions: 1}); err != nil {
			t.Fatal(err)
		}
		claimant := checkpoint.Claimant{Owner: "leader", Create: true}
		claimed, err := checkpoint.Claim(t.Context(), state.Checkpoints(), "orders", claimant)
		if err != nil {
			t.Fatal(err)
		}
		if err := claimed.Pin(t.Context(), checkpoint.Place{Start: checkpoint.ClusterTime{Seconds: 5}}); err != nil {
			t.Fatal(err)
		}
		var between atomic.Int64
		client, err := mongo.Connect(options.Client().ApplyURI(testserver.Get(t).MongoURI).SetMonitor(&event.CommandMonitor{
			Succeeded: func(ctx context.Context, e *event.CommandSucceededEvent) {
				if e.CommandName == "findAndModify" && e.DatabaseName == name {
					if between.Add(1) > 2*tt.times || between.Load()%2 == 1 { // of the record, of the checkpoint
						return
					}
					if _, err := checkpoint.Claim(context.WithoutCancel(ctx), state.Checkpoints(), "orders", claimant); err != nil {
						t.Error(err)
					}
				}
			},
		}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
		_, err = mongostate.New(client, name).MoveCheckpoint(t.Context(), mongostate.Move{
			Stream: "orders", Action: "reset", Who: "ann", Why: "test", At: time.Now(), To: &checkpoint.Place{Anew: true},
		})
		if tt.done != (err == nil) || !tt.done && !errors.Is(err, checkpoint.ErrSuperseded) {
			t.Errorf("MoveCheckpoint with a leader %d times between = %v", tt.times, err)
		}
		counts, err := state.Gaps("orders").Counts(t.Context())
		if want := map[bool]int64{true: 1, false: 0}[tt.done]; err != nil || counts["reset"] != want {
			t.Errorf("with a leader %d times between the ledger has %v, %v, want %d resets", tt.times, counts, err, want)
		}
		open, err := testserver.Mongo(t).Database(name).Collection("stream_gaps").CountDocuments(t.Context(), bson.D{{Key: "toTime", Value: nil}})
		if err != nil || open != counts["reset"] {
			t.Errorf("%d entries have no end, %v, want %d: what was not done ends where it begins", open, err, counts["reset"])
		}
	}
}
