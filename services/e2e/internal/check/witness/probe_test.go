package witness

import (
	"context"
	"errors"
	"testing"
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
	s.Probe(ctx, func(from, to time.Time) {
		cancel()
		if to.Sub(from) < blocked || from.Before(before) {
			t.Errorf("got %v to %v, want the time in which a request was blocked", from, to)
		}
	})
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Error("got nothing that was late, want the request that was blocked")
	}
}
