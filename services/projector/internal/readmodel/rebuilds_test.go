package readmodel_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/rebuild"
)

// recorded is the record of a projection as it is stored.
func recorded(t *testing.T, store *readmodel.Store, v *projection.Version) rebuild.Record {
	t.Helper()
	records, err := store.Rebuilds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return records.Of(v)
}

// Of two who go on with a rebuild at the same time, one does.
func TestRebuilds_TheSameStateIsLeftOnce(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	store := readmodel.New(client, readmodel.Config{Database: database})
	v := projection.Version{Projection: "orders", View: "orders", Number: 1}
	at := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	for _, next := range []func(rebuild.Record) rebuild.Record{
		func(r rebuild.Record) rebuild.Record { return r.Begin(&v, 1, "c", "somebody", "a test", at) },
		rebuild.Record.Follow,
		func(r rebuild.Record) rebuild.Record { return r.Switch(at) },
		rebuild.Record.Settle,
		func(r rebuild.Record) rebuild.Record { return r.Drop(1) },
	} {
		was := recorded(t, store, &v)
		if err := store.Revise(t.Context(), was, next(was)); err != nil {
			t.Fatalf("the first: %v", err)
		}
		if err := store.Revise(t.Context(), was, next(was)); !errors.Is(err, readmodel.ErrRevised) {
			t.Errorf("the second: got %v, want it refused", err)
		}
		if was.Revision == 0 {
			continue
		}
		if _, err := store.Hold(t.Context(), was); !errors.Is(err, readmodel.ErrRevised) {
			t.Errorf("a hold of what was overtaken: got %v, want it refused", err)
		}
	}
	if r := recorded(t, store, &v); r.Current != 2 || r.Next != 0 || r.Revision != 3 || r.Turn != 5 || len(r.Retired) != 0 {
		t.Errorf("got %+v, want it settled with version 2, and nothing to be dropped", r)
	}
}

// Projections of one name and version that have different documents have records of their own.
func TestRebuilds_OfOneNameAreToldApartByTheirDocuments(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	store := readmodel.New(client, readmodel.Config{Database: database})
	at := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	for _, view := range []string{"orders", "others"} {
		v := projection.Version{Projection: "orders", View: view, Number: 1}
		was := recorded(t, store, &v)
		if err := store.Revise(t.Context(), was, was.Begin(&v, 1, "c", "somebody", view, at)); err != nil {
			t.Fatalf("the record of %s: %v", view, err)
		}
		if err := store.Revise(t.Context(), recorded(t, store, &v), recorded(t, store, &v).Follow()); err != nil {
			t.Fatalf("the record of %s once more: %v", view, err)
		}
		if r := recorded(t, store, &v); r.Why != view || r.State != rebuild.Following {
			t.Errorf("of %s: got %+v, want its own record", view, r)
		}
	}
}

// Positions stand under a projection's name, for all groups: the number of a version
// that another group has there, or has had, is taken.
func TestRebuilds_NumbersOfAnotherGroupsVersionsAreTaken(t *testing.T) {
	t.Parallel()
	v := projection.Version{Projection: "orders", View: "orders", Number: 1}
	theirs := projection.Version{Projection: "orders", View: "others", Number: 1}
	noted := func(note bson.D) func(*testing.T, *readmodel.Store, *mongo.Collection) error {
		return func(t *testing.T, _ *readmodel.Store, owners *mongo.Collection) error {
			t.Helper()
			_, err := owners.InsertOne(t.Context(), note)
			return err
		}
	}
	for name, note := range map[string]func(*testing.T, *readmodel.Store, *mongo.Collection) error{
		"with positions that are claimed": noted(bson.D{{Key: "_id", Value: "$account:orders_v4"}, {Key: "projection", Value: "orders_v4"}}),
		"with documents":                  noted(bson.D{{Key: "_id", Value: "$shape:others_v4/orders_v4"}, {Key: "of", Value: "orders_v4"}, {Key: "in", Value: "others_v4"}}),
		"given out by a rebuild that was cancelled": func(t *testing.T, store *readmodel.Store, _ *mongo.Collection) error {
			t.Helper()
			at := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
			return store.Revise(t.Context(), rebuild.Record{}, rebuild.Record{}.Begin(&theirs, 3, "c", "somebody", "a test", at).Abandon().Drop(4))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, database := servers.Mongo(t, nil)
			store := readmodel.New(client, readmodel.Config{Database: database})
			owners := client.Database(database).Collection(projection.Owners)
			other := noted(bson.D{{Key: "_id", Value: "$shape:orders2_v9/orders2_v9"}, {Key: "of", Value: "orders2_v9"}})
			if err := errors.Join(other(t, store, owners), note(t, store, owners)); err != nil {
				t.Fatal(err)
			}
			if highest, err := store.Claimed(t.Context(), &v); err != nil || highest != 4 {
				t.Errorf("the highest version: got %d and %v, want 4", highest, err)
			}
		})
	}
}

// While a command has a record for itself nobody else changes it; once it was silent for
// long enough, the next one does, and it does not any more.
func TestRebuilds_ARecordThatIsHeldIsNobodyElses(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	store := readmodel.New(client, readmodel.Config{Database: database})
	v := projection.Version{Projection: "orders", View: "orders", Number: 1}
	if err := store.Revise(t.Context(), rebuild.Record{}, rebuild.Record{}.Begin(&v, 1, "c", "somebody", "a test", time.Now())); err != nil {
		t.Fatal(err)
	}
	held, err := store.Hold(t.Context(), recorded(t, store, &v))
	if err != nil {
		t.Fatal(err)
	}
	seen := recorded(t, store, &v)
	if _, err := store.Hold(t.Context(), seen); !errors.Is(err, readmodel.ErrHeld) {
		t.Errorf("a second hold: got %v, want it refused", err)
	}
	if err := store.Revise(t.Context(), seen, seen.Abandon()); !errors.Is(err, readmodel.ErrHeld) {
		t.Errorf("another's change: got %v, want it refused", err)
	}
	if err := store.Revise(t.Context(), held, held.Follow()); err != nil {
		t.Errorf("its own change: %v", err)
	}
	late, err := store.Hold(t.Context(), recorded(t, store, &v))
	if err != nil {
		t.Errorf("a hold of what it has let go: %v", err)
	}
	past := bson.D{{Key: "$set", Value: bson.D{{Key: "heldUntil", Value: time.Now().Add(-time.Second)}}}}
	if _, err := client.Database(database).Collection(projection.Owners).UpdateByID(t.Context(), "$rebuild:orders:1:orders", past); err != nil {
		t.Fatal(err)
	}
	seen = recorded(t, store, &v)
	if err := store.Revise(t.Context(), seen, seen.Abandon()); err != nil {
		t.Errorf("another's change once its time is over: %v", err)
	}
	if err := store.Revise(t.Context(), late, late.Switch(time.Now())); !errors.Is(err, readmodel.ErrRevised) {
		t.Errorf("its own change after another's: got %v, want it refused", err)
	}
}

// A record of an earlier release has no turns, and goes on.
func TestRebuilds_OneOfAnEarlierReleaseGoesOn(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	store := readmodel.New(client, readmodel.Config{Database: database})
	v := projection.Version{Projection: "orders", View: "orders", Number: 1}
	if _, err := client.Database(database).Collection(projection.Owners).InsertOne(t.Context(), bson.D{
		{Key: "_id", Value: "$rebuild:orders:1"},
		{Key: "projection", Value: "orders"},
		{Key: "declared", Value: 1},
		{Key: "current", Value: 1},
		{Key: "next", Value: 2},
		{Key: "highest", Value: 2},
		{Key: "state", Value: "following"},
		{Key: "revision", Value: int64(2)},
		{Key: "retired", Value: nil},
	}); err != nil {
		t.Fatal(err)
	}
	held, err := store.Hold(t.Context(), recorded(t, store, &v))
	if err == nil {
		err = store.Revise(t.Context(), held, held.Switch(time.Now()))
	}
	if r := recorded(t, store, &v); err != nil || r.Turn != 2 || r.Revision != 2 {
		t.Errorf("got %+v and %v, want it switched in its second turn", r, err)
	}
}

// A projection that has changed is noted once, and whoever has decided before that is
// refused.
func TestRebuilds_AChangedProjectionIsNoted(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	store := readmodel.New(client, readmodel.Config{Database: database})
	v := projection.Version{Projection: "orders", View: "orders", Number: 1}
	first := rebuild.Record{}.Begin(&v, 1, "c", "somebody", "a test", time.Now())
	if err := store.Revise(t.Context(), rebuild.Record{}, first); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := store.Outdate(t.Context(), &first); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Revise(t.Context(), first, first.Follow()); !errors.Is(err, readmodel.ErrRevised) {
		t.Errorf("what was decided before: got %v, want it refused", err)
	}
	r := recorded(t, store, &v)
	if !r.Changed || r.Turn != 2 || r.Revision != 1 {
		t.Errorf("got %+v, want it changed, by one turn", r)
	}
	again := r.Abandon().Begin(&v, 2, "d", "somebody", "a test", time.Now())
	if err := store.Revise(t.Context(), r, again); err != nil {
		t.Fatal(err)
	}
	if err := store.Outdate(t.Context(), &first); err != nil || recorded(t, store, &v).Changed {
		t.Errorf("what a late projector notes of the one before: got %v, and the next one changed", err)
	}
}

// A process that starts with the name of another may suspect that it has died, which is
// no reason to go on without it: it may write until it has been silent for long.
func TestRebuilds_OneThatANamesakeSuspectsIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newSubject(t, nil)
	first, second := s.Process("pod-1", "pod"), s.Process("pod-2", "pod")
	first.Works, second.Works = "orders_v1:1", "orders_v1:2"
	if err := errors.Join(first.Beat(t.Context(), true), second.Beat(t.Context(), true)); err != nil {
		t.Fatal(err)
	}
	waited := func(want ...string) {
		t.Helper()
		others, all, err := s.Elsewhere(t.Context(), "orders_v1:2")
		if err != nil || !slices.Equal(others, want) || all != len(want)+1 {
			t.Errorf("got %v of %d and %v, want %v", others, all, err, want)
		}
	}
	waited("pod")
	silent := bson.D{{Key: "$set", Value: bson.D{{Key: "heartbeatAt", Value: time.Now().Add(-time.Minute)}}}}
	if _, err := s.db.Collection("projector_processes").UpdateByID(t.Context(), "pod-1", silent); err != nil {
		t.Fatal(err)
	}
	waited()
	if err := first.Beat(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	waited("pod")
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	waited()
}

// Whatever a version has is removed in requests that each take a bounded time.
func TestRebuilds_ALargeVersionIsDroppedByPages(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	s := newSubject(t, r.monitor())
	const many = 2500
	positions, skipped := make([]any, 0, many+1), make([]any, 0, many+1)
	add := func(name string, i int) {
		aggregate := fmt.Sprintf("%06d", i)
		positions = append(positions, bson.D{{Key: "_id", Value: bson.D{{Key: "projection", Value: name}, {Key: "aggregateId", Value: aggregate}}}})
		skipped = append(skipped, bson.D{{Key: "_id", Value: bson.D{{Key: "aggregateId", Value: aggregate}, {Key: "sequence", Value: "1"}, {Key: "eventId", Value: aggregate}, {Key: "projection", Value: name}}}})
	}
	for i := range many {
		add("p_v1", i)
	}
	add("p_v2", 7)
	all := map[string][]any{projection.Positions: positions, projection.SkippedEvents: skipped}
	for name, documents := range all {
		if _, err := s.db.Collection(name).InsertMany(t.Context(), documents); err != nil {
			t.Fatal(err)
		}
	}
	r.take()
	if err := s.Drop(t.Context(), &projection.Version{Projection: "p", View: "p", Number: 1}); err != nil {
		t.Fatal(err)
	}
	names, commands := r.take()
	for i, name := range names {
		if name != "delete" {
			continue
		}
		keys, is := commands[i].Lookup("deletes", "0", "q", "_id", "$in").ArrayOK()
		var ids []bson.RawValue
		if is {
			ids, _ = keys.Values()
		}
		if len(ids) == 0 || len(ids) > 1000 {
			t.Errorf("a request removes what matches %s, want it by some keys", commands[i].Lookup("deletes", "0", "q"))
		}
	}
	for name := range all {
		if n, err := s.db.Collection(name).CountDocuments(t.Context(), bson.D{}); err != nil || n != 1 {
			t.Errorf("%s: got %d and %v, want that of the other version", name, n, err)
		}
	}
}
