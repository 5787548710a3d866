package mongostate_test

import (
	"context"
	"strings"
	"sync/atomic"
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

// at is a place at that second.
func at(seconds uint32) *checkpoint.Place {
	return &checkpoint.Place{Start: checkpoint.ClusterTime{Seconds: seconds}}
}

// settings are those of a stream.
var settings = checkpoint.Settings{"SERVICEBUS_TOPIC": "changes"}

// begun is a stream that stands at a second.
func begun(t *testing.T, state *mongostate.Database, seconds uint32) {
	t.Helper()
	if _, err := state.Streams().Open(t.Context(), checkpoint.Record{Stream: "orders", Whole: "orders", Lease: "lease", Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	claimed, err := checkpoint.Claim(t.Context(), state.Checkpoints(), "orders", checkpoint.Claimant{Owner: "leader", Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := claimed.Pin(t.Context(), *at(seconds)); err != nil {
		t.Fatal(err)
	}
	if err := state.Streams().Confirm(t.Context(), "orders", claimed.Term, mongostate.Kept{Lease: "lease", Settings: settings}); err != nil {
		t.Fatal(err)
	}
}

// beforeNth is a client that calls a function before its nth command of a name on a
// collection.
func beforeNth(t *testing.T, command, collection string, nth int, call func()) *mongo.Client {
	t.Helper()
	var seen atomic.Int64
	client, err := mongo.Connect(options.Client().ApplyURI(testserver.Get(t).MongoURI).SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			if e.CommandName == command && e.Command.Lookup(command).StringValue() == collection && seen.Add(1) == int64(nth) {
				call()
			}
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	return client
}

// moveTo moves the stream to a second.
func moveTo(t *testing.T, client *mongo.Client, database string, seconds uint32) error {
	t.Helper()
	_, err := mongostate.New(client, database).MoveCheckpoint(t.Context(), mongostate.Move{
		Stream: "orders", Action: "set", Who: "ann", Why: "test", At: time.Now(), To: at(seconds),
	})
	return err
}

// entries are those of the ledger that are gaps, by the second at which they end.
func entries(t *testing.T, state *mongostate.Database) map[int64]mongostate.Gap {
	t.Helper()
	latest, err := state.Gaps("orders").Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[int64]mongostate.Gap{}
	for _, gap := range latest {
		found[gap.ToTime.Unix()] = gap
	}
	return found
}

// TestSettle_LeavesWhatALaterTermHasAnnounced has a command that has made its move
// settle after another has announced one, which is then made.
func TestSettle_LeavesWhatALaterTermHasAnnounced(t *testing.T) {
	t.Parallel()
	database := testserver.Name(t)
	state := mongostate.New(testserver.Mongo(t), database)
	begun(t, state, 100)
	announced, settled, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	later := beforeNth(t, "update", "resume_tokens", 1, func() { close(announced); <-settled })
	earlier := beforeNth(t, "update", "streams", 1, func() { // its move is made, and it has not settled
		go func() { done <- moveTo(t, later, database, 300) }()
		<-announced
	})
	if err := moveTo(t, earlier, database, 200); err != nil {
		t.Error(err)
	}
	if open := entries(t, state); !open[300].Unfinished || open[200].Unfinished || open[200].Decision != "set" {
		t.Errorf("before the later move the ledger has %+v, want its entry open, and the earlier done", open)
	}
	close(settled)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if both := entries(t, state); len(both) != 2 || both[300].Unfinished || both[300].Decision != "set" || both[300].FromTime.Unix() != 200 {
		t.Errorf("the ledger has %+v, want both moves", both)
	}
	undone, err := testserver.Mongo(t).Database(database).Collection("checkpoint_log").CountDocuments(t.Context(),
		bson.D{{Key: "$or", Value: bson.A{bson.D{{Key: "done", Value: false}}, bson.D{{Key: "ended", Value: bson.D{{Key: "$ne", Value: nil}}}}}}})
	if err != nil || undone != 0 {
		t.Errorf("the log has %d moves that were not done, %v, want none", undone, err)
	}
}

// TestMove_ThatIsMadeAfterItWasTakenForDeadIsInTheLedger has somebody of a higher
// term, whose claim was lost, say that the move was not made.
func TestMove_ThatIsMadeAfterItWasTakenForDeadIsInTheLedger(t *testing.T) {
	t.Parallel()
	database := testserver.Name(t)
	state := mongostate.New(testserver.Mongo(t), database)
	begun(t, state, 100)
	client := beforeNth(t, "update", "resume_tokens", 1, func() {
		if err := state.Settle(t.Context(), "orders", "", 100); err != nil {
			t.Error(err)
		}
	})
	if err := moveTo(t, client, database, 200); err != nil {
		t.Fatal(err)
	}
	if got := entries(t, state)[200]; got.Decision != "set" || got.Error != "test" || got.FromTime.Unix() != 100 || got.Unfinished {
		t.Errorf("the ledger has %+v, want what was passed over", got)
	}
	line, err := testserver.Mongo(t).Database(database).Collection("checkpoint_log").FindOne(t.Context(), bson.D{}).Raw()
	if err != nil || !line.Lookup("done").Boolean() || line.Lookup("ended").Type != 0 {
		t.Errorf("the log has %s, %v, want it done and not ended", line, err)
	}
}

// TestGaps_WhatIsAnnouncedAgainIsNotVoid has one decision about one place be
// announced by a term that ends before, and by the next.
func TestGaps_WhatIsAnnouncedAgainIsNotVoid(t *testing.T) {
	t.Parallel()
	state := fresh(t)
	gap := mongostate.Gap{From: "p", FromTime: time.Unix(100, 0), ToTime: time.Unix(200, 0), Cause: "history lost", Decision: "now", Error: "lost", Term: 1}
	ledger := state.Gaps("orders")
	if err := ledger.Announce(t.Context(), gap, "first"); err != nil {
		t.Fatal(err)
	}
	if err := state.Settle(t.Context(), "orders", "", 2); err != nil {
		t.Fatal(err)
	}
	gap.Term = 2
	if err := ledger.Announce(t.Context(), gap, "second"); err != nil {
		t.Fatal(err)
	}
	if err := state.Settle(t.Context(), "orders", "second", 3); err != nil {
		t.Fatal(err)
	}
	if got := entries(t, state)[200]; got.Decision != "now" || got.Error != "lost" || got.Unfinished {
		t.Errorf("the ledger has %+v, want the decision", got)
	}
}

// TestMove_ACopyThatHasBegunSinceTheLookIsNotGivenUp moves a checkpoint that is in a
// copy by the time of the claim.
func TestMove_ACopyThatHasBegunSinceTheLookIsNotGivenUp(t *testing.T) {
	t.Parallel()
	state := fresh(t)
	recorded(t, state)
	claimed, err := checkpoint.Claim(t.Context(), state.Checkpoints(), "orders", checkpoint.Claimant{Owner: "a", Create: true})
	if err != nil {
		t.Fatal(err)
	}
	place := checkpoint.Place{Start: checkpoint.ClusterTime{Seconds: 5}, Copy: &checkpoint.Copy{Copied: 3, Total: 9}}
	if err := claimed.Pin(t.Context(), place); err != nil {
		t.Fatal(err)
	}
	move := mongostate.Move{Stream: "orders", Action: "set", Who: "ann", To: &checkpoint.Place{Start: checkpoint.ClusterTime{Seconds: 7}}}
	if _, err := state.MoveCheckpoint(t.Context(), move); err == nil || !strings.Contains(err.Error(), "--give-up-copy") {
		t.Errorf("MoveCheckpoint = %v, want it refused", err)
	}
	if found, err := state.Checkpoints().Read(t.Context(), "orders"); err != nil || !found.Copying() {
		t.Errorf("the checkpoint is %+v, %v, want it in the copy", found, err)
	}
}
