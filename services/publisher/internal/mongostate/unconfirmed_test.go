package mongostate_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/testserver"
)

func TestUnconfirmed_AWriteThatNoMajorityHasInTimeSaysSo(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	client, name := testserver.Connect(t, servers.MongoURI), testserver.Name(t)
	state := mongostate.New(client, name)
	others := client.Database(name).Collection("others", options.Collection().SetWriteConcern(writeconcern.W1()))
	held := state.Lease("orders")
	holder := lease.Holder{ID: "a", Incarnation: "1", Tenure: 1}
	if _, err := held.Take(t.Context(), lease.Claim{Holder: holder, TTL: time.Hour, Subject: "orders"}); err != nil {
		t.Fatal(err)
	}
	testserver.SetWorld(t, servers, `{"mongodb":{"lag":"1h"}}`)
	holder.Tenure++
	for name, write := range map[string]func(context.Context) error{
		"lease taken": func(ctx context.Context) error {
			_, err := held.Take(ctx, lease.Claim{Holder: holder, TTL: time.Hour, Subject: "orders", OverOwnID: true})
			return err
		},
		"lease renewed": func(ctx context.Context) error { _, err := held.Renew(ctx, holder, time.Hour); return err },
		"checkpoint claimed": func(ctx context.Context) error {
			_, err := state.Checkpoints().Claim(ctx, "orders", checkpoint.Claimant{Owner: "a", Create: true})
			return err
		},
		"stream opened": func(ctx context.Context) error {
			_, err := state.Streams().Open(ctx, checkpoint.Record{Stream: "orders"})
			return err
		},
	} {
		// The times of the server's writes are told to the second, so there is one in the next.
		testserver.Eventually(t, name+" to say that a majority is behind", func() bool {
			short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := others.InsertOne(t.Context(), bson.D{}); err != nil {
				t.Fatal(err)
			}
			err := write(short)
			if err == nil {
				t.Fatalf("%s: got no error, want one", name)
			}
			return strings.Contains(err.Error(), "a majority of the replica set has only what was written until")
		})
	}
	testserver.SetWorld(t, servers, `{}`)
	if record, err := held.Read(t.Context()); err != nil || record.Holder != holder {
		t.Errorf("got the holder %+v and %v when the lag has ended, want %+v", record.Holder, err, holder)
	}
}
