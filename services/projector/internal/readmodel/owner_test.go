package readmodel_test

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

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

// meanwhile runs what another one does before a client's nth write to a collection.
func meanwhile(collection string, nth int32, other func()) *event.CommandMonitor {
	var writes atomic.Int32
	return &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		if to, ok := e.Command.Lookup("update").StringValueOK(); ok && to == collection && writes.Add(1) == nth {
			other()
		}
	}}
}

// Of two that look at once, and both see nobody, one is refused.
func TestOwner_OfTwoThatClaimAtOnceOneIsRefused(t *testing.T) {
	t.Parallel()
	feed, another := readmodel.Feed{Topic: "topic", Subscription: "projector"}, readmodel.Feed{Topic: "topic", Subscription: "another"}
	for name, tt := range map[string]struct {
		before      string // the collection before whose nth write the other one comes
		nth         int32
		other       readmodel.Config
		collections []string // the other's
	}{
		"the same collections":  {"collection_owners", 1, readmodel.Config{Group: "other", Feed: another}, []string{"c"}},
		"the same subscription": {"collection_owners", 2, readmodel.Config{Group: "other", Feed: feed}, []string{"d"}},
		"the same group":        {"projector_processes", 1, readmodel.Config{Feed: another}, []string{"c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calm, database := servers.Mongo(t, nil)
			tt.other.Database = database
			other := readmodel.New(calm, tt.other)
			client, _ := servers.Mongo(t, meanwhile(tt.before, tt.nth, func() {
				if err := other.Claim(t.Context(), tt.collections, "the other"); err != nil {
					t.Errorf("the other's claim: got %v, want it done", err)
				}
			}))
			one := readmodel.New(client, readmodel.Config{Database: database, Feed: feed})
			if err := one.Claim(t.Context(), []string{"c"}, "the one"); !errors.Is(err, readmodel.ErrElsewhere) {
				t.Errorf("the overtaken claim: got %v, want it refused", err)
			}
			if err := other.CheckOwner(t.Context(), tt.collections); err != nil {
				t.Errorf("the other: got %v, want it where it is", err)
			}
		})
	}
}

// Who is refused because another subscription feeds its group keeps its own from nobody.
func TestOwner_ARefusedClaimKeepsNoSubscription(t *testing.T) {
	t.Parallel()
	calm, database := servers.Mongo(t, nil)
	feed := readmodel.Feed{Topic: "topic", Subscription: "projector"}
	other := readmodel.New(calm, readmodel.Config{Database: database, Feed: readmodel.Feed{Topic: "topic", Subscription: "another"}})
	client, _ := servers.Mongo(t, meanwhile("projector_processes", 1, func() {
		if err := other.Claim(t.Context(), []string{"c"}, "the other"); err != nil {
			t.Errorf("the other's claim: got %v, want it done", err)
		}
	}))
	one := readmodel.New(client, readmodel.Config{Database: database, Feed: feed})
	if err := one.Claim(t.Context(), []string{"c"}, "the one"); !errors.Is(err, readmodel.ErrElsewhere) {
		t.Errorf("the overtaken claim: got %v, want it refused", err)
	}
	third := readmodel.New(calm, readmodel.Config{Database: database, Group: "third", Feed: feed})
	if err := third.Claim(t.Context(), []string{"d"}, "a third"); err != nil {
		t.Errorf("a group that the subscription is for: got %v, want it taken", err)
	}
}

// What was planned is not done over what another operator has done since.
func TestMove_WhatIsMovedMeanwhileIsNotTaken(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		feed        readmodel.Feed
		collections []string
	}{
		"a collection":   {readmodel.Feed{Topic: "topic", Subscription: "own"}, []string{"c"}},
		"a subscription": {readmodel.Feed{Topic: "topic", Subscription: "projector"}, []string{"d"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, database := servers.Mongo(t, nil)
			of := func(group string, feed readmodel.Feed) *readmodel.Store {
				return readmodel.New(client, readmodel.Config{Database: database, Group: group, Feed: feed})
			}
			if err := of("", readmodel.Feed{Topic: "topic", Subscription: "projector"}).Claim(t.Context(), []string{"c"}, "the first"); err != nil {
				t.Fatal(err)
			}
			late, quick := of("late", tt.feed), of("quick", tt.feed)
			planned, err := late.PlanMove(t.Context(), tt.collections)
			if err != nil || planned.None() {
				t.Fatalf("plan: got %+v and %v, want something to move", planned, err)
			}
			done, err := quick.PlanMove(t.Context(), tt.collections)
			if err == nil {
				err = quick.Move(t.Context(), done, "quick")
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := late.Move(t.Context(), planned, "late"); !errors.Is(err, readmodel.ErrInUse) {
				t.Errorf("the late move: got %v, want it refused", err)
			}
			if err := quick.CheckOwner(t.Context(), tt.collections); err != nil {
				t.Errorf("the quick one: got %v, want it where it is", err)
			}
		})
	}
}

// A projector that notes no versions may apply events after its last word, until it
// counts as dead: what another one notes in between may be old.
func TestProcess_VersionsAreDoubtedUntilOneThatNotesNoneCountsAsDead(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	ctx := t.Context()
	cfg := readmodel.Config{Database: database, Feed: readmodel.Feed{Topic: "topic", Subscription: "projector"}, OnGap: "report"}
	reports := readmodel.New(client, cfg)
	if err := errors.Join(reports.Claim(ctx, []string{"c"}, "a test"), reports.Process("p-1", "p").Beat(ctx, true)); err != nil {
		t.Fatal(err)
	}
	cfg.OnGap = "wait"
	waits := readmodel.New(client, cfg)
	if err := waits.AggregateVersions.AdvanceVersion(ctx, "a", 1); err != nil {
		t.Fatal(err)
	}
	if got, err := waits.AggregateVersions.LastVersion(ctx, "a"); err != nil || got.Known {
		t.Errorf("a version noted after the last word: got %+v and %v, want it doubted", got, err)
	}
	_, err := client.Database(database).Collection("projector_processes").UpdateOne(ctx, map[string]string{"_id": "feed"},
		map[string]any{"$set": map[string]any{"unnotedAt": time.Now().Add(-time.Minute)}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := waits.AggregateVersions.LastVersion(ctx, "a"); err != nil || !got.Known {
		t.Errorf("a version noted after its death: got %+v and %v, want it known", got, err)
	}
}

// A document that was written while versions were not noted, or may have been, says
// nothing of a note that is lost.
func TestVersions_OneThatIsLostIsShownByWhatWasWrittenSince(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	ctx := t.Context()
	of := func(onGap string) *readmodel.Store {
		return readmodel.New(client, readmodel.Config{Database: database, Feed: readmodel.Feed{Topic: "topic", Subscription: "projector"}, OnGap: onGap, Marked: []string{"c"}})
	}
	waits, reports := of("wait"), of("report")
	_, err := waits.Writes.Write(ctx, []projection.Write{{Projection: "p", Collection: "c", ID: "a", Event: readmodeltest.Event("a", 3), Update: bson.D{}}})
	if err = errors.Join(err, waits.Claim(ctx, []string{"c"}, "a test"), waits.Process("w-1", "w").Beat(ctx, true)); err != nil {
		t.Fatal(err)
	}
	last := func(when string, known bool) {
		t.Helper()
		if got, err := waits.AggregateVersions.LastVersion(ctx, "a"); err != nil || got.Known != known || known && got.Number != 3 {
			t.Errorf("%s: got %+v and %v, want it known: %t", when, got, err, known)
		}
	}
	last("written before", false)
	set := func(fields bson.D) {
		t.Helper()
		if _, err := client.Database(database).Collection(projection.Processes).UpdateOne(ctx, bson.D{{Key: "_id", Value: "feed"}}, bson.D{{Key: "$set", Value: fields}}); err != nil {
			t.Fatal(err)
		}
	}
	hour := time.Now().Add(-time.Hour)
	set(bson.D{{Key: "notedSince", Value: hour}})
	if err := waits.Process("w-1", "w").Beat(ctx, false); err != nil {
		t.Fatal(err)
	}
	last("written since", true)
	set(bson.D{{Key: "unnotedAt", Value: time.Now()}})
	last("written while one lived that notes none", false)
	set(bson.D{{Key: "unnotedAt", Value: hour}})
	if err := reports.Process("r-1", "r").Beat(ctx, true); err != nil {
		t.Fatal(err)
	}
	set(bson.D{{Key: "unnotedAt", Value: hour}})
	last("with one that notes none", false)
}

// A replica of before a rollout puts back what is lost, and nothing over what a
// newer one has noted.
func TestKeep_LeavesANewerDeploymentAlone(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	ctx := t.Context()
	s := func() *readmodel.Store {
		return readmodel.New(client, readmodel.Config{Database: database, Feed: readmodel.Feed{Topic: "topic", Subscription: "projector"}})
	}
	older, newer := s(), s()
	owners := client.Database(database).Collection("collection_owners")
	if err := errors.Join(older.Claim(ctx, []string{"c"}, "older"), older.Deploy(ctx, "older"), newer.Deploy(ctx, "newer"), owners.Drop(ctx)); err != nil {
		t.Fatal(err)
	}
	if again, err := older.Keep(ctx, []string{"c"}, "older"); err != nil || !strings.Contains(again, "collection_owners") {
		t.Fatalf("keep: got %q and %v, want the claims made again", again, err)
	}
	if got, err := older.Deployments(ctx); err != nil || len(got) != 1 || got[0].StartedBy != "newer" {
		t.Errorf("the deployments: got %+v and %v, want the newer one", got, err)
	}
}

// backup keeps what a collection holds, and returns what puts that back.
func backup(t *testing.T, c *mongo.Collection) (restore func()) {
	t.Helper()
	var all []any
	cursor, err := c.Find(t.Context(), bson.D{})
	if err == nil {
		err = cursor.All(t.Context(), &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		_, err := c.DeleteMany(t.Context(), bson.D{})
		if err == nil {
			_, err = c.InsertMany(t.Context(), all)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// What the last to start has noted is noted again over what is restored from before,
// and by an older replica that runs beside it, too, until then.
func TestKeep_NotesADeploymentAgainThatWentBack(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	ctx := t.Context()
	of := func(onGap string) *readmodel.Store {
		return readmodel.New(client, readmodel.Config{Database: database, Feed: readmodel.Feed{Topic: "topic", Subscription: "projector"}, OnGap: onGap})
	}
	first, older, newer := of("report"), of("report"), of("wait")
	if err := errors.Join(first.Claim(ctx, []string{"c"}, "first"), first.Deploy(ctx, "first")); err != nil {
		t.Fatal(err)
	}
	restore := backup(t, client.Database(database).Collection("projector_processes"))
	if err := errors.Join(older.Deploy(ctx, "older"), newer.Deploy(ctx, "newer")); err != nil {
		t.Fatal(err)
	}
	restore()
	for _, keeps := range []struct {
		by    *readmodel.Store
		want  string
		again bool
	}{{older, "older", true}, {newer, "newer", true}, {older, "newer", false}} {
		if again, err := keeps.by.Keep(ctx, []string{"c"}, keeps.want); err != nil || (again != "") != keeps.again {
			t.Errorf("keep: got %q and %v, want it noted again: %v", again, err, keeps.again)
		}
		if got, err := newer.Deployments(ctx); err != nil || len(got) != 1 || got[0].StartedBy != keeps.want {
			t.Errorf("the deployments: got %+v and %v, want that of the %s one", got, err, keeps.want)
		}
	}
}

// Of what is noted in two collections the later word counts: an older one that was
// restored undoes no move.
func TestMove_StaysWhereWhatItHasNotedIsRestoredFromBefore(t *testing.T) {
	t.Parallel()
	for _, restored := range []string{"collection_owners", "projector_processes"} {
		t.Run(restored, func(t *testing.T) {
			t.Parallel()
			client, database := servers.Mongo(t, nil)
			ctx := t.Context()
			of := func(subscription string) *readmodel.Store {
				return readmodel.New(client, readmodel.Config{Database: database, Feed: readmodel.Feed{Topic: "topic", Subscription: subscription}})
			}
			before, after := of("projector"), of("second")
			if err := before.Claim(ctx, []string{"c"}, "before"); err != nil {
				t.Fatal(err)
			}
			// By a clock that was ahead: what comes later is later all the same.
			ahead := bson.D{{Key: "$set", Value: bson.D{{Key: "since", Value: time.Now().Add(time.Hour)}}}}
			for _, name := range []string{"collection_owners", "projector_processes"} {
				if _, err := client.Database(database).Collection(name).UpdateMany(ctx, bson.D{}, ahead); err != nil {
					t.Fatal(err)
				}
			}
			restore := backup(t, client.Database(database).Collection(restored))
			plan, err := after.PlanMove(ctx, []string{"c"})
			if err == nil {
				err = after.Move(ctx, plan, "after")
			}
			if err != nil {
				t.Fatal(err)
			}
			restore()
			if feeds, err := after.Feeds(ctx); err != nil || len(feeds) != 2 || feeds[0].Subscription != "second" {
				t.Errorf("feeds of what is restored: got %v and %v, want both", feeds, err)
			}
			if err := before.Claim(ctx, []string{"c"}, "before"); !errors.Is(err, readmodel.ErrElsewhere) {
				t.Errorf("who was moved from: got %v, want it refused", err)
			}
			for range 2 { // what is noted again says so, too
				if _, err := after.Keep(ctx, []string{"c"}, "after"); err != nil {
					t.Errorf("who was moved to: got %v, want it where it is", err)
				}
			}
			if feeds, err := after.Feeds(ctx); err != nil || len(feeds) != 2 || feeds[0].Subscription != "second" || feeds[1].Subscription != "projector" {
				t.Errorf("feeds: got %v and %v, want the one that was moved to, and the one before it", feeds, err)
			}
			// Nothing is left beside the processes, and a claim of before the move is.
			if _, err := client.Database(database).Collection("projector_processes").DeleteOne(ctx, bson.D{{Key: "_id", Value: "feed"}}); err != nil {
				t.Fatal(err)
			}
			if err := before.CheckOwner(ctx, []string{"c"}); !errors.Is(err, readmodel.ErrElsewhere) {
				t.Errorf("who was moved from, by claims alone: got %v, want it refused", err)
			}
		})
	}
}

// What a group gives up late, as its operator was interrupted, is not taken from who
// has it by then.
func TestMove_ReleasesNothingOfAnothers(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	ctx := t.Context()
	from, to := readmodel.Feed{Topic: "topic", Subscription: "projector"}, readmodel.Feed{Topic: "topic", Subscription: "next"}
	of := func(group string, feed readmodel.Feed) *readmodel.Store {
		return readmodel.New(client, readmodel.Config{Database: database, Group: group, Feed: feed})
	}
	if err := of("", from).Claim(ctx, []string{"c"}, "a test"); err != nil {
		t.Fatal(err)
	}
	late, err := of("", to).PlanMove(ctx, []string{"c"})
	if err != nil || len(late.Released) != 1 {
		t.Fatalf("plan: got %+v and %v, want the subscription released", late, err)
	}
	other := of("other", from)
	taken, err := other.PlanMove(ctx, []string{"d"})
	if err = errors.Join(err, other.Move(ctx, taken, "the other"), of("", to).Move(ctx, late, "the late one")); err != nil {
		t.Fatal(err)
	}
	if err := of("third", from).Claim(ctx, []string{"e"}, "a third"); !errors.Is(err, readmodel.ErrElsewhere) {
		t.Errorf("a third group on the subscription: got %v, want it refused: it is the other's", err)
	}
}

// A move that fails on the way is done by another one, and what it has moved to is
// the group's own before anybody starts there.
func TestMove_OneThatFailedOnTheWayIsDoneAgain(t *testing.T) {
	t.Parallel()
	calm, database := servers.Mongo(t, nil)
	from, to := readmodel.Feed{Topic: "topic", Subscription: "projector"}, readmodel.Feed{Topic: "topic", Subscription: "next"}
	before := readmodel.New(calm, readmodel.Config{Database: database, Feed: from})
	if err := before.Claim(t.Context(), []string{"c"}, "a test"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	client, _ := servers.Mongo(t, meanwhile("projector_processes", 3, cancel)) // when all else is done
	for _, store := range []*readmodel.Store{
		readmodel.New(client, readmodel.Config{Database: database, Feed: to}),
		readmodel.New(calm, readmodel.Config{Database: database, Feed: to}),
	} {
		plan, err := store.PlanMove(t.Context(), []string{"c"})
		if err != nil || plan.From == nil || *plan.From != from {
			t.Fatalf("plan: got %+v and %v, want the group moved", plan, err)
		}
		if err := store.Move(ctx, plan, "a test"); (err != nil) != (ctx.Err() != nil) {
			t.Fatalf("move: got %v, want an error only where it was stopped", err)
		}
		ctx = t.Context()
	}
	other := readmodel.New(calm, readmodel.Config{Database: database, Group: "other", Feed: to})
	if err := other.Claim(t.Context(), []string{"d"}, "a test"); !errors.Is(err, readmodel.ErrElsewhere) {
		t.Errorf("another group where the group was moved to: got %v, want it refused", err)
	}
	other = readmodel.New(calm, readmodel.Config{Database: database, Group: "third", Feed: from})
	if err := other.Claim(t.Context(), []string{"d"}, "a test"); err != nil {
		t.Errorf("another group where the group was moved from: got %v, want it taken", err)
	}
}
