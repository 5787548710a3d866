package stream

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/testserver"
)

func TestLead_APartitionHasItsShareOfTheBytesInFlight(t *testing.T) {
	t.Parallel()
	s := &Stream{config: config.Config{MaxInFlightBytes: 8 << 20, Partitions: 4}}
	if got := s.relayConfig(1, 0).MaxInFlightBytes; got != 2<<20 {
		t.Errorf("got a window of %d bytes, want a quarter of 8 MiB", got)
	}
}

// Nobody can accept a checkpoint that is gone.
func TestLead_AHaltIsLookedAtAgainWhenTheCheckpointIsGone(t *testing.T) {
	t.Parallel()
	client, name := testserver.Mongo(t), testserver.Name(t)
	s := &Stream{Shared: Shared{State: mongostate.New(client, name)}, config: config.Config{StreamName: "orders"}, whole: "orders"}
	ended := make(chan bool, 1)
	go func() { ended <- s.awaitDecision(t.Context(), time.Hour) }()
	checkpoints, there := client.Database(name).Collection("resume_tokens"), false
	testserver.Eventually(t, "the halt to be looked at again", func() bool {
		var err error
		if there = !there; there {
			_, err = checkpoints.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "orders"}, {Key: "term", Value: int64(1)}})
		} else {
			_, err = checkpoints.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: "orders"}})
		}
		if err != nil {
			t.Fatal(err)
		}
		select {
		case again := <-ended:
			return again
		default:
			return false
		}
	})
}
