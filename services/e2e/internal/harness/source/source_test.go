package source

import (
	"context"
	"reflect"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/harness/cluster/clustertest"
	"changerelay/services/e2e/internal/harness/orders"
)

func connect(t *testing.T) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(clustertest.Sandbox(t).MongoURI))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client
}

func events(aggregate string, versions ...int64) []orders.Event {
	var list []orders.Event
	for _, v := range versions {
		list = append(list, orders.Event{
			Aggregate: aggregate, Version: v, Type: "Happened",
			Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Data: orders.Data{"n": v},
		})
	}
	return list
}

func TestSource_WhatIsWrittenIsReadBackByVersionAndOnce(t *testing.T) {
	t.Parallel()
	client := connect(t)
	w := NewWriter(client, "db", "events")
	// A batch of which some are in already is what a lost answer leaves behind.
	for _, batch := range [][]orders.Event{events("b", 9, 10, 11), events("a", 1), events("b", 10, 11, 12, 100), events("a", 1)} {
		if err := w.Insert(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	nameless := bson.D{{Key: "_id", Value: "x"}, {Key: "version", Value: 1}}
	if _, err := client.Database("db").Collection("events").InsertOne(t.Context(), nameless); err != nil {
		t.Fatal(err)
	}
	versions := map[string][]int64{}
	err := Each(t.Context(), client, "db", "events", func(e Stored) error {
		versions[e.Aggregate] = append(versions[e.Aggregate], e.Version)
		if want := any(orders.Data{"n": e.Version}); !reflect.DeepEqual(e.Data, want) || e.Type != "Happened" {
			t.Errorf("event %s: got type %s and data %v, want Happened and %v", e.ID(), e.Type, e.Data, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string][]int64{"a": {1}, "b": {9, 10, 11, 12, 100}}; !reflect.DeepEqual(versions, want) {
		t.Errorf("events: got %v, want %v", versions, want)
	}
}

func TestSource_WhatIsTakenIsGoneAndGivenInOrder(t *testing.T) {
	t.Parallel()
	client := connect(t)
	w := NewWriter(client, "db", "events")
	if err := w.Insert(t.Context(), append(events("b", 9, 10, 11), events("a", 1)...)); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, e := range append(events("b", 10, 9, 99), events("a", 1)...) {
		ids = append(ids, e.ID())
	}
	taken, err := w.Take(t.Context(), ids)
	if err != nil {
		t.Fatal(err)
	}
	if got := versions(taken...); !reflect.DeepEqual(got, map[string][]int64{"a": {1}, "b": {9, 10}}) {
		t.Errorf("taken: got %v, want version 1 of a, and 9 and 10 of b", got)
	}
	var left []Stored
	err = Each(t.Context(), client, "db", "events", func(e Stored) error {
		left = append(left, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := versions(left...); !reflect.DeepEqual(got, map[string][]int64{"b": {11}}) {
		t.Errorf("left: got %v, want version 11 of b", got)
	}
}

func versions(events ...Stored) map[string][]int64 {
	of := make(map[string][]int64)
	for _, e := range events {
		of[e.Aggregate] = append(of[e.Aggregate], e.Version)
	}
	return of
}

func TestSource_AnInsertIsTriedAgainUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=50"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	w := NewWriter(client, "db", "events")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := w.Insert(ctx, events("a", 1)); err == nil {
		t.Error("insert without a server: got no error")
	}
	if w.Retries() == 0 {
		t.Error("retries: got 0, want some")
	}
}
