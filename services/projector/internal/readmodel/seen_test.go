package readmodel_test

import (
	"bytes"
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/sandboxtest"
)

// ordersView is what version 1 says of the readers' view, and ordersSecond the other.
var (
	ordersView   = projection.View{Name: "orders", On: "orders_v1"}
	ordersSecond = projection.Version{Projection: "orders", Number: 2, View: "orders"}
)

// notedView is what is noted of the readers' view.
func notedView(ctx context.Context, t *testing.T, db *mongo.Database) string {
	t.Helper()
	var note struct {
		On string `bson:"viewOn"`
	}
	if err := db.Collection(projection.Owners).FindOne(ctx, bson.D{{Key: "_id", Value: "$view:orders"}}).Decode(&note); err != nil {
		t.Error(err)
	}
	return note.On
}

// Whatever was noted before, setup notes nothing over a switch that came after it had
// looked at the view.
func TestRefresh_NotesNothingOverASwitch(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(context.Context, *mongo.Collection) error{
		"nothing was noted": func(ctx context.Context, owners *mongo.Collection) error {
			return second(owners.DeleteMany(ctx, bson.D{}))
		},
		"a switch was killed": func(ctx context.Context, owners *mongo.Collection) error {
			return second(owners.UpdateMany(ctx, bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "viewOn", Value: "orders_v2"}}}}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calm, database := servers.Mongo(t, nil)
			db, other := calm.Database(database), readmodel.New(calm, readmodel.Config{Database: database})
			if _, err := other.EnsureView(t.Context(), ordersView); err != nil {
				t.Fatal(err)
			}
			if err := change(t.Context(), db.Collection(projection.Owners)); err != nil {
				t.Fatal(err)
			}
			client, _ := servers.Mongo(t, &event.CommandMonitor{Succeeded: func(ctx context.Context, e *event.CommandSucceededEvent) {
				if e.CommandName == "listCollections" {
					if err := other.SwitchView(context.WithoutCancel(ctx), &ordersSecond); err != nil {
						t.Error(err)
					}
				}
			}})
			one := readmodel.New(client, readmodel.Config{Database: database})
			if err := one.Refresh(t.Context(), ordersView); err != nil {
				t.Fatal(err)
			}
			if got := notedView(t.Context(), t, db); got != "orders_v2" {
				t.Errorf("noted: got %s, want what was switched to", got)
			}
		})
	}
}

// A switch notes what readers are to see before they do, and once more after: setup
// in between finds the earlier version.
func TestSwitchView_NotesWhatReadersSeeBeforeAndAfter(t *testing.T) {
	t.Parallel()
	calm, database := servers.Mongo(t, nil)
	db, other := calm.Database(database), readmodel.New(calm, readmodel.Config{Database: database})
	if _, err := other.EnsureView(t.Context(), ordersView); err != nil {
		t.Fatal(err)
	}
	before := ""
	client, _ := servers.Mongo(t, &event.CommandMonitor{Started: func(ctx context.Context, e *event.CommandStartedEvent) {
		if e.CommandName == "collMod" {
			before = notedView(context.WithoutCancel(ctx), t, db)
			if err := other.Refresh(context.WithoutCancel(ctx), ordersView); err != nil {
				t.Error(err)
			}
		}
	}})
	if err := readmodel.New(client, readmodel.Config{Database: database}).SwitchView(t.Context(), &ordersSecond); err != nil {
		t.Fatal(err)
	}
	if got := notedView(t.Context(), t, db); before != "orders_v2" || got != "orders_v2" {
		t.Errorf("noted before %s and after %s, want what was switched to", before, got)
	}
}

// Versions of a view are told by its whole name, and by theirs.
func TestPresent_WhatIsNoVersionOfAViewIsNotGuessed(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	for _, name := range []string{"my.orders_v1", "myXorders_v2", "my.orders_v3_old", "old_my.orders_v4", "my.orders_v05"} {
		_, err := db.Collection(projection.Owners).InsertOne(t.Context(), bson.D{{Key: "_id", Value: name}})
		if err == nil {
			_, err = db.Collection(name).InsertOne(t.Context(), bson.D{{Key: "_id", Value: "a"}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s := readmodel.New(client, readmodel.Config{Database: database})
	if made, err := s.EnsureView(t.Context(), projection.View{Name: "my.orders", On: "my.orders_v2"}); err != nil || !made {
		t.Fatalf("got %t and %v, want the view made", made, err)
	}
	version := projection.Version{Projection: "orders", Number: 2, View: "my.orders"}
	if live, err := s.Live(t.Context(), &version); err != nil || live != 1 {
		t.Errorf("readers see version %d and %v, want the one that has documents", live, err)
	}
}

// A role that may not note what readers see may still have a view of an older release
// show nothing that is deleted.
func TestRefresh_MendsAViewOfWhichItMayNoteNothing(t *testing.T) {
	t.Parallel()
	server := sandboxtest.StartWith(t, "")
	client, err := mongo.Connect(options.Client().ApplyURI(server.MongoURI))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	db := client.Database("shop")
	if err := db.CreateView(t.Context(), "orders", "orders_v1", mongo.Pipeline{}); err != nil {
		t.Fatal(err)
	}
	const unauthorized = 13
	server.Fault(t, map[string]any{"kind": "mongodb.fail", "commands": []string{"update"}, "code": unauthorized})
	if err := readmodel.New(client, readmodel.Config{Database: "shop"}).Refresh(t.Context(), ordersView); err != nil {
		t.Fatal(err)
	}
	found, err := db.ListCollectionSpecifications(t.Context(), bson.D{{Key: "name", Value: "orders"}})
	if err != nil || len(found) != 1 || !bytes.Contains(found[0].Options, []byte("deletedAt")) {
		t.Errorf("got %+v and %v, want a view that shows nothing deleted", found, err)
	}
}
