package stream

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/testserver"
)

func TestLead_APartitionHasItsShareOfTheBytesInFlight(t *testing.T) {
	t.Parallel()
	s := &Stream{config: config.Config{MaxInFlightBytes: 8 << 20, Partitions: 4}}
	if got := s.relayConfig(1).MaxInFlightBytes; got != 2<<20 {
		t.Errorf("got a window of %d bytes, want a quarter of 8 MiB", got)
	}
}

func TestLead_OneChangeIsParkedAtATimeWhereTheyAreCounted(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int64]int{3: 1, 0: 8} {
		s := &Stream{config: config.Config{ParkLimit: limit, Senders: 8, Partitions: 1}}
		if got := s.relayConfig(1).ParkAtOnce; got != want {
			t.Errorf("with a limit of %d: got %d at once, want %d", limit, got, want)
		}
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

// Whoever types what a halt names is refused where there is no place to accept.
func TestLead_NoHaltNamesACheckpointWithoutAPlaceToAccept(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		place    checkpoint.Place
		recorded bool
		accepts  bool
	}{
		"a record of before, and a reset":    {place: checkpoint.Place{Anew: true}, recorded: true},
		"no record, and a reset":             {place: checkpoint.Place{Anew: true}},
		"a record of before, and a position": {place: checkpoint.Place{Start: checkpoint.ClusterTime{Seconds: 1}}, recorded: true, accepts: true},
		"no record, and a position":          {place: checkpoint.Place{Start: checkpoint.ClusterTime{Seconds: 1}}, accepts: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &knowledge{known: true, term: 6}
			found := kept{recorded: tt.recorded, record: checkpoint.Record{Term: 5}, exists: true, checkpoint: checkpoint.Checkpoint{Term: 5, Place: tt.place}}
			lost := w.contradicts(found)
			if lost == nil || lost.Reason != changestream.RecordLost {
				t.Fatalf("got %v, want the record lost", lost)
			}
			if got := strings.Contains(lost.Error(), "publisher checkpoint accept"); got != tt.accepts || !strings.Contains(lost.Error(), "publisher checkpoint reset") {
				t.Errorf("got %v, want a reset named, and to accept: %t", lost, tt.accepts)
			}
		})
	}
}
