package witness

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestProbe_TellsWhenTheServersAnsweredLate(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const blocked = 700 * time.Millisecond
	command := bson.D{
		{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
		{Key: "data", Value: bson.D{
			{Key: "failCommands", Value: bson.A{"ping"}},
			{Key: "blockConnection", Value: true},
			{Key: "blockTimeMS", Value: blocked.Milliseconds()},
		}},
	}
	if err := s.Client.Database("admin").RunCommand(t.Context(), command).Err(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	before := time.Now()
	err := s.Probe(ctx, func(from, to time.Time) {
		cancel()
		if to.Sub(from) < blocked || from.Before(before) {
			t.Errorf("got %v to %v, want the time in which a request was blocked", from, to)
		}
	})
	if !errors.Is(ctx.Err(), context.Canceled) || err != nil {
		t.Errorf("got nothing that was late, or %v, want the request that was blocked", err)
	}
}

func TestProbe_TellsOfRequestsThatWaitAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		takes := []time.Duration{0, 500 * ms, 700 * ms, 10 * ms}
		var late []time.Duration
		probe(ctx, func() {
			if len(takes) == 0 {
				cancel()
				return
			}
			time.Sleep(takes[0]) //nolint:forbidigo // in a bubble
			takes = takes[1:]
		}, func(from, to time.Time) { late = append(late, from.Sub(began), to.Sub(began)) })
		// From the answer before it on, which came after 0, a pause, and 500 ms.
		if want := []time.Duration{600 * ms, 1400 * ms}; !slices.Equal(late, want) {
			t.Errorf("got %v, want %v", late, want)
		}
	})
}

// A request to servers that are away fails before it would be late.
func TestProbe_ServersThatAreAwayAreNotLate(t *testing.T) {
	t.Parallel()
	if got := *probing("mongodb://127.0.0.1:1/").ServerSelectionTimeout; got >= answerTime {
		t.Errorf("a request waits for servers for %v, want less than %v", got, answerTime)
	}
}
