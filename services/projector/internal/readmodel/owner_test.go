package readmodel_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"

	"changerelay/services/projector/internal/readmodel"
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
	if err := waits.AdvanceVersion(ctx, "a", 1); err != nil {
		t.Fatal(err)
	}
	if got, err := waits.LastVersion(ctx, "a"); err != nil || got.Known {
		t.Errorf("a version noted after the last word: got %+v and %v, want it doubted", got, err)
	}
	_, err := client.Database(database).Collection("projector_processes").UpdateOne(ctx, map[string]string{"_id": "feed"},
		map[string]any{"$set": map[string]any{"unnotedAt": time.Now().Add(-time.Minute)}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := waits.LastVersion(ctx, "a"); err != nil || !got.Known {
		t.Errorf("a version noted after its death: got %+v and %v, want it known", got, err)
	}
}

// A replica of before a rollout puts back what is lost, and nothing over what a
// newer one has noted.
func TestKeep_LeavesANewerDeploymentAlone(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	ctx := t.Context()
	s := readmodel.New(client, readmodel.Config{Database: database, Feed: readmodel.Feed{Topic: "topic", Subscription: "projector"}})
	if err := errors.Join(s.Claim(ctx, []string{"c"}, "older"), s.Deploy(ctx, "newer"), client.Database(database).Collection("collection_owners").Drop(ctx)); err != nil {
		t.Fatal(err)
	}
	if err := s.Keep(ctx, []string{"c"}, "older"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Deployments(ctx); err != nil || len(got) != 1 || got[0].StartedBy != "newer" {
		t.Errorf("the deployments: got %+v and %v, want the newer one", got, err)
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
	client, _ := servers.Mongo(t, meanwhile("projector_processes", 1, cancel))
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
