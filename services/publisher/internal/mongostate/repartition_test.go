package mongostate_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/testserver"
)

// checkpoints writes checkpoints of the given positions, as they were before
// there were records.
func checkpoints(t *testing.T, database string, positions map[string]string) {
	t.Helper()
	for name, position := range positions {
		document := bson.D{{Key: "_id", Value: name}, {Key: "term", Value: int64(len(name))}, {Key: "saves", Value: int64(9)}}
		if position != "" {
			document = append(document, bson.E{Key: "position", Value: position},
				bson.E{Key: "token", Value: bson.D{{Key: "_data", Value: position}}})
		}
		if _, err := kept(t, database).InsertOne(t.Context(), document); err != nil {
			t.Fatal(err)
		}
	}
}

// kept are the checkpoints of a database, written with a majority.
func kept(t *testing.T, database string) *mongo.Collection {
	t.Helper()
	return testserver.Mongo(t).Database(database, options.Database().SetWriteConcern(writeconcern.Majority())).Collection("resume_tokens")
}

// recorded makes the record of a stream that is not split.
func recorded(t *testing.T, state *mongostate.Database) {
	t.Helper()
	if _, err := state.Streams().Open(t.Context(), checkpoint.Record{Stream: "orders", Whole: "orders", Lease: "lease", Partitions: 1, Confirmed: 1}); err != nil {
		t.Fatal(err)
	}
}

func to(n int) mongostate.Repartition {
	return mongostate.Repartition{Stream: "orders", Lease: "lease", To: n, By: "ann"}
}

func TestRepartition_AnotherNumberIsRefusedUntilTheCheckpointsFollow(t *testing.T) {
	t.Parallel()
	database := testserver.Name(t)
	state := mongostate.New(testserver.Mongo(t), database)
	checkpoints(t, database, map[string]string{
		"orders-0of2": "6553000000000002.82", "orders-1of2": "6553000000000001.82", "orders-2of": "00.82", "others": "00.82",
	})
	if err := state.CheckPartitions(t.Context(), "orders", 2); err != nil {
		t.Errorf("CheckPartitions of the same number = %v", err)
	}
	for _, n := range []int{1, 3} {
		if err := state.CheckPartitions(t.Context(), "orders", n); !errors.Is(err, mongostate.ErrPartitioned) || !strings.Contains(err.Error(), "publisher repartition") {
			t.Errorf("CheckPartitions of %d = %v, want a refusal that says what to do", n, err)
		}
	}
	if plan, err := state.Repartition(t.Context(), to(3), true); err != nil || len(plan.Created) != 3 || len(plan.Retired) != 2 {
		t.Errorf("Repartition dry = %+v, %v, want 3 created and 2 retired", plan, err)
	}
	if err := state.CheckPartitions(t.Context(), "orders", 2); err != nil {
		t.Errorf("CheckPartitions after a dry run = %v", err)
	}
	for range 2 { // the second time it finds nothing to do
		if _, err := state.Repartition(t.Context(), to(3), false); err != nil {
			t.Fatal(err)
		}
	}
	if err := state.CheckPartitions(t.Context(), "orders", 3); err != nil {
		t.Errorf("CheckPartitions after the change = %v", err)
	}
	for _, name := range mongostate.PartitionNames("orders", 3) {
		found, err := state.Checkpoints().Read(t.Context(), name)
		if err != nil || found.Position != "6553000000000001.82" || found.Term <= int64(len("orders-0of2")) || found.Token == nil {
			t.Errorf("checkpoint %q is %+v, %v, want the place of the one that was least far, and a higher term", name, found, err)
		}
	}
	var replaced bson.Raw
	if err := testserver.Mongo(t).Database(database).Collection("replaced_checkpoints").FindOne(t.Context(), bson.D{}).Decode(&replaced); err != nil {
		t.Fatal(err)
	}
	if old, _ := replaced.Lookup("checkpoints").Array().Values(); len(old) != 2 {
		t.Errorf("kept are %v, want both of the old", replaced)
	}
}

func TestRepartition_AFrozenLeaderIsRefusedWhateverComesLater(t *testing.T) {
	t.Parallel()
	database := testserver.Name(t)
	state := mongostate.New(testserver.Mongo(t), database)
	checkpoints(t, database, map[string]string{"orders": "6553000000000002.82"})
	recorded(t, state)
	frozen, err := checkpoint.Claim(t.Context(), state.Checkpoints(), "orders", checkpoint.Claimant{Owner: "frozen"})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 1, 2, 1} {
		if _, err := state.Repartition(t.Context(), to(n), false); err != nil {
			t.Fatal(err)
		}
		if err := frozen.Move(t.Context(), checkpoint.Place{Token: marshal(t, bson.D{}), Position: "p"}); !errors.Is(err, checkpoint.ErrSuperseded) {
			t.Errorf("Save of a leader that knows nothing of %d partitions = %v, want ErrSuperseded", n, err)
		}
		for _, name := range mongostate.PartitionNames("orders", n) {
			found, err := state.Checkpoints().Read(t.Context(), name)
			if err != nil || found.Retired || found.Term <= frozen.Term || found.Position != "6553000000000002.82" {
				t.Errorf("checkpoint %q is %+v, %v, want it in use with a higher term", name, found, err)
			}
		}
	}
	retired, err := state.Checkpoints().Read(t.Context(), "orders-0of2")
	if err != nil || !retired.Retired {
		t.Errorf("checkpoint of the old number is %+v, %v, want it kept and retired", retired, err)
	}
	late := checkpoint.Claimant{Owner: "late"}
	if _, err := checkpoint.Claim(t.Context(), state.Checkpoints(), "orders-0of2", late); !errors.Is(err, checkpoint.ErrMissing) {
		t.Errorf("Claim of a retired checkpoint = %v, want ErrMissing", err)
	}
}

func TestRepartition_WorksOnOneNumberOfPartitionsThatHasPlaces(t *testing.T) {
	t.Parallel()
	good := map[string]string{"orders-0of2": "6553000000000002.82", "orders-1of2": "6553000000000001.82"}
	for name, tt := range map[string]struct {
		beside map[string]string
		to     mongostate.Repartition
		want   string // of the refusal; empty for none
	}{
		"a foreign one beside, to the good ones": {map[string]string{"orders": ""}, to(2), "--from"},
		"a foreign one beside, to it":            {map[string]string{"orders": ""}, to(1), "--from"},
		"a foreign one beside, to a third":       {map[string]string{"orders": "00.82"}, to(3), "--from"},
		"from the empty one":                     {map[string]string{"orders": ""}, mongostate.Repartition{Stream: "orders", Lease: "lease", From: 1, To: 2}, "has no place"},
		"from one that is not there":             {nil, mongostate.Repartition{Stream: "orders", Lease: "lease", From: 4, To: 2}, "no checkpoints of 4"},
		"of an unknown stream":                   {nil, mongostate.Repartition{Stream: "unknown", Lease: "lease", To: 2}, "nothing is known"},
		"the good ones are right":                {map[string]string{"orders": ""}, mongostate.Repartition{Stream: "orders", Lease: "lease", From: 2, To: 2}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := testserver.Name(t)
			state := mongostate.New(testserver.Mongo(t), database)
			checkpoints(t, database, good)
			checkpoints(t, database, tt.beside)
			_, err := state.Repartition(t.Context(), tt.to, false)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Repartition = %v, want %q", err, tt.want)
			}
			for name, position := range good {
				found, err := state.Checkpoints().Read(t.Context(), name)
				if err != nil || string(found.Position) != position || found.Retired {
					t.Errorf("checkpoint %q is %+v, %v, want it untouched", name, found, err)
				}
			}
			if err := state.CheckPartitions(t.Context(), "orders", 2); (err == nil) != (tt.want == "" || tt.beside == nil) {
				t.Errorf("CheckPartitions = %v", err)
			}
		})
	}
}

func TestRepartition_IsRefusedUnderALeader(t *testing.T) {
	t.Parallel()
	database := testserver.Name(t)
	state := mongostate.New(testserver.Mongo(t), database)
	checkpoints(t, database, map[string]string{"orders": "6553000000000002.82"})
	claim := lease.Claim{Holder: lease.Holder{ID: "pod-1", Incarnation: "1", Tenure: 1}, TTL: time.Hour, Subject: "orders"}
	for _, name := range []string{"lease", "lease-3of7", "another"} {
		if _, err := state.Lease(name).Take(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		if _, err := state.Repartition(t.Context(), to(4), false); err == nil || !strings.Contains(err.Error(), "pod-1") {
			t.Errorf("Repartition under %q = %v, want a refusal that names the holder", name, err)
		}
		if _, err := state.Lease(name).Release(t.Context(), claim.Holder); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRepartition_ALeaderThatBeganSinceTheLookIsRefused raises the terms of a stream
// as a leader does, between the look of a repartition and what it does then.
func TestRepartition_ALeaderThatBeganSinceTheLookIsRefused(t *testing.T) {
	t.Parallel()
	database := testserver.Name(t)
	state := mongostate.New(testserver.Mongo(t), database)
	begun(t, state, 100)
	claimed := make(chan *checkpoint.Claimed, 1)
	client := beforeNth(t, "insert", "replaced_checkpoints", 1, func() {
		for range 3 {
			record, err := state.Streams().Raise(t.Context(), "orders", 0)
			if err != nil {
				t.Error(err)
				return
			}
			leader, err := checkpoint.Claim(t.Context(), state.Checkpoints(), "orders", checkpoint.Claimant{Owner: "b", Above: record.Term - 1})
			if err != nil {
				t.Error(err)
				return
			}
			select {
			case <-claimed:
			default:
			}
			claimed <- leader
		}
	})
	if _, err := mongostate.New(client, database).Repartition(t.Context(), to(2), false); err != nil {
		t.Fatal(err)
	}
	leader := <-claimed
	if err := leader.Move(t.Context(), checkpoint.Place{Token: marshal(t, bson.D{}), Position: "p"}); !errors.Is(err, checkpoint.ErrSuperseded) {
		t.Errorf("Save = %v, want ErrSuperseded", err)
	}
	found, err := state.Checkpoints().Read(t.Context(), "orders")
	if err != nil || !found.Retired || found.Term <= leader.Term {
		t.Errorf("the checkpoint is %+v, %v, want it retired in a later term than %d", found, err, leader.Term)
	}
	if _, err := state.Streams().Raise(t.Context(), "orders", 0); !errors.Is(err, mongostate.ErrNoStream) {
		t.Errorf("Raise = %v, want ErrNoStream", err)
	}
}

// TestCheckpoints_ARetiredOneTakesNothingOfItsOwnTerm retires it and leaves its term,
// as no repartition does.
func TestCheckpoints_ARetiredOneTakesNothingOfItsOwnTerm(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(*checkpoint.Claimed) error{
		"save": func(c *checkpoint.Claimed) error {
			return c.Move(t.Context(), checkpoint.Place{Token: marshal(t, bson.D{}), Position: "p"})
		},
		"mark": func(c *checkpoint.Claimed) error { return c.Keep(t.Context(), "id", "p") },
		"pin":  func(c *checkpoint.Claimed) error { return c.Pin(t.Context(), *at(100)) },
	} {
		database := testserver.Name(t)
		state := mongostate.New(testserver.Mongo(t), database)
		claimed, err := checkpoint.Claim(t.Context(), state.Checkpoints(), "orders", checkpoint.Claimant{Owner: "a", Create: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kept(t, database).UpdateOne(t.Context(), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "retired", Value: true}}}}); err != nil {
			t.Fatal(err)
		}
		if err := write(claimed); !errors.Is(err, checkpoint.ErrSuperseded) {
			t.Errorf("%s = %v, want ErrSuperseded", name, err)
		}
		if found, err := state.Checkpoints().Read(t.Context(), "orders"); err != nil || !found.Retired || found.Pinned() {
			t.Errorf("after %s the checkpoint is %+v, %v, want it retired and as it was", name, found, err)
		}
	}
}

// TestRepartition_ThatDiedIsFinishedByAnother ends one at each step, of a stream that
// had both numbers before, or not, and calls another to either number.
func TestRepartition_ThatDiedIsFinishedByAnother(t *testing.T) {
	t.Parallel()
	steps := []struct {
		collection string
		nth        int  // write to it that fails
		names      bool // the number that is right is named
	}{
		{"streams", 1, false}, {"resume_tokens", 1, true}, {"streams", 2, true}, {"resume_tokens", 2, true},
	}
	for _, step := range steps {
		for _, before := range [][]int{nil, {2, 1}} {
			for _, next := range []int{1, 2, 3} {
				database := testserver.Name(t)
				state := mongostate.New(testserver.Mongo(t), database)
				begun(t, state, 100)
				for _, n := range before {
					if _, err := state.Repartition(t.Context(), to(n), false); err != nil {
						t.Fatal(err)
					}
				}
				if err := confirmed(t, state, before); err != nil {
					t.Fatal(err)
				}
				dying, die := context.WithCancel(t.Context())
				client := beforeNth(t, "update", step.collection, step.nth, die)
				if _, err := mongostate.New(client, database).Repartition(dying, to(2), false); err == nil {
					t.Fatalf("the repartition is done, want it to have died at %+v", step)
				}
				scope, err := state.Scope(t.Context(), "orders", "lease")
				if err != nil {
					t.Fatal(err)
				}
				for _, err := range []error{
					state.CheckPartitions(t.Context(), "orders", next), scope.Check(mongostate.Said{Partitions: next, Lease: "lease"}),
				} {
					if step.names && (err == nil || !strings.Contains(err.Error(), "--from ") || strings.Contains(err.Error(), "--from N")) {
						t.Errorf("a start after %+v, before that %v, = %v, want the number that is right", step, before, err)
					}
				}
				if _, err := state.Repartition(t.Context(), to(next), false); err != nil {
					t.Errorf("Repartition to %d of one that died at %+v, after %v = %v", next, step, before, err)
					continue
				}
				if err := state.CheckPartitions(t.Context(), "orders", next); err != nil {
					t.Errorf("CheckPartitions of %d after %+v = %v", next, step, err)
				}
				for _, name := range mongostate.PartitionNames("orders", next) {
					if found, err := state.Checkpoints().Read(t.Context(), name); err != nil || found.Retired || found.Start.Seconds != 100 {
						t.Errorf("checkpoint %q is %+v, %v, want the place carried over", name, found, err)
					}
					if record, err := state.Streams().Read(t.Context(), name); err != nil || record.Retired || !maps.Equal(record.Settings, settings) {
						t.Errorf("the record of %q after %+v is %+v, %v, want the settings carried over", name, step, record, err)
					}
				}
			}
		}
	}
}

// confirmed has the stream without partitions be led, where it is as after the
// repartitions before.
func confirmed(t *testing.T, state *mongostate.Database, before []int) error {
	t.Helper()
	if len(before) == 0 {
		return nil // begun has
	}
	found, err := state.Checkpoints().Read(t.Context(), "orders")
	if err != nil {
		return err
	}
	return state.Streams().Confirm(t.Context(), "orders", found.Term, mongostate.Kept{Lease: "lease", Settings: settings})
}

// TestRepartition_SettlesWhatACommandLeftOpen has a command die after its move.
func TestRepartition_SettlesWhatACommandLeftOpen(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"before the repartition": true, "the repartition died before it settled": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := testserver.Name(t)
			state := mongostate.New(testserver.Mongo(t), database)
			begun(t, state, 100)
			dying, die := context.WithCancel(t.Context())
			client := beforeNth(t, "update", "streams", 1, die) // the move is made, and not decided
			_, err := mongostate.New(client, database).MoveCheckpoint(dying, mongostate.Move{
				Stream: "orders", Action: "set", Who: "ann", Why: "test", At: time.Now(), To: at(200),
			})
			if err == nil || !entries(t, state)[200].Unfinished {
				t.Fatalf("the move ended with %v, the ledger has %+v, want it open", err, entries(t, state))
			}
			if !early {
				ending, end := context.WithCancel(t.Context())
				client := beforeNth(t, "update", "stream_gaps", 1, end)
				if _, err := mongostate.New(client, database).Repartition(ending, to(2), false); err == nil {
					t.Fatal("the repartition is done, want it to have died")
				}
			}
			if _, err := state.Repartition(t.Context(), to(2), false); err != nil {
				t.Fatal(err)
			}
			if got := entries(t, state)[200]; got.Unfinished || got.Decision != "set" {
				t.Errorf("the ledger has %+v, want the move done", got)
			}
		})
	}
}

// TestRepartition_KeepsWhatWasPurged goes to another number of partitions and back.
func TestRepartition_KeepsWhatWasPurged(t *testing.T) {
	t.Parallel()
	database := testserver.Name(t)
	state := mongostate.New(testserver.Mongo(t), database)
	begun(t, state, 100)
	records := testserver.Mongo(t).Database(database).Collection("streams")
	if _, err := records.UpdateOne(t.Context(), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "purged", Value: int64(3)}, {Key: "halt", Value: "old"}}}}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 1} {
		if _, err := state.Repartition(t.Context(), to(n), false); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{"orders": true, "orders-0of2": false} {
		var kept bson.Raw
		if err := records.FindOne(t.Context(), bson.D{{Key: "_id", Value: name}}).Decode(&kept); err != nil {
			t.Fatal(err)
		}
		if n, there := kept.Lookup("purged").AsInt64OK(); there != want || want && n != 3 {
			t.Errorf("the record is %v, want what was purged to stay", kept)
		}
		if _, err := kept.LookupErr("halt"); err == nil {
			t.Errorf("the record is %v, want nothing else of the one before", kept)
		}
	}
}
