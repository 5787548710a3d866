package mongostate_test

import (
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/testserver"
)

func TestHomeMade_ALeaseThatWasRenewedIsNotTaken(t *testing.T) {
	t.Parallel()
	db, state := homeMade(t)
	leases := db.Collection("leader_leases")
	if _, err := leases.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "x"}, {Key: "leaderId", Value: "pod"}, {Key: "expiresAt", Value: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	found, err := state.HomeMade(t.Context())
	if err != nil || len(found.Leases) != 1 {
		t.Fatalf("found %+v, %v, want the lease", found, err)
	}
	if _, err := leases.UpdateOne(t.Context(), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "expiresAt", Value: time.Now().Add(time.Hour)}}}}); err != nil {
		t.Fatal(err)
	}
	if err := state.Fence(t.Context(), found.Leases[0], "me"); !errors.Is(err, mongostate.ErrMoving) {
		t.Errorf("Fence = %v, want %v", err, mongostate.ErrMoving)
	}
}

func TestHomeMade_WhatIsOursIsNotAnothers(t *testing.T) {
	t.Parallel()
	db, state := homeMade(t)
	if _, err := state.Lease("lease").Take(t.Context(), lease.Claim{Holder: lease.Holder{ID: "a", Incarnation: "1", Tenure: 1}, TTL: time.Hour, Subject: "s"}); err != nil {
		t.Fatal(err)
	}
	token := bson.D{{Key: "_data", Value: "82AB"}}
	for collection, document := range map[string]bson.D{
		"resume_tokens":  {{Key: "_id", Value: "ours"}, {Key: "term", Value: int64(3)}, {Key: "token", Value: token}},
		"parked_changes": {{Key: "_id", Value: "parked"}, {Key: "token", Value: token}},
		"kept_changes":   {{Key: "_id", Value: token}, {Key: "operationType", Value: "insert"}},
		"sessions":       {{Key: "_id", Value: "s"}, {Key: "accessToken", Value: "not hex"}},
	} {
		if _, err := db.Collection(collection).InsertOne(t.Context(), document); err != nil {
			t.Fatal(err)
		}
	}
	many := make([]any, 1001)
	for i := range many {
		many[i] = bson.D{{Key: "token", Value: token}}
	}
	if _, err := db.Collection("events").InsertMany(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	found, err := state.HomeMade(t.Context())
	if err != nil || len(found.Leases)+len(found.Tokens) != 0 || len(found.Unseen) != 1 || found.Unseen[0] != "events" {
		t.Errorf("found %+v, %v, want nothing, and that events is too large", found, err)
	}
}

// homeMade is a state database, and the same as another program sees it.
func homeMade(t *testing.T) (*mongo.Database, *mongostate.Database) {
	t.Helper()
	client, name := testserver.Mongo(t), testserver.Name(t)
	return client.Database(name), mongostate.New(client, name)
}
