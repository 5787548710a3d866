package mongoserver_test

import (
	"context"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"changerelay/services/sandbox/internal/mongodb/engine"
)

func TestPace_OnlyWritesThatAskForAMajorityWaitForIt(t *testing.T) {
	t.Parallel()
	h := startVersion(t, "4.4")
	h.engine.SetPace(engine.Pace{Majority: time.Hour})
	soon, cancelSoon := context.WithTimeout(t.Context(), time.Minute)
	defer cancelSoon()
	_, err := h.db.Collection("things").InsertOne(soon, bson.D{})
	must(t, err)
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	coll := h.db.Collection("things", options.Collection().SetWriteConcern(writeconcern.Majority()))
	if _, err := coll.InsertOne(short, bson.D{}); !mongo.IsTimeout(err) {
		t.Errorf("got %v, want a timeout", err)
	}
}

func TestPace_ButForFourEveryWriteAndNoReadWaitsForAMajority(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("things")
	_, err := coll.InsertOne(t.Context(), bson.D{})
	must(t, err)
	h.engine.SetPace(engine.Pace{Majority: time.Hour})
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = coll.Aggregate(soon, bson.A{bson.D{{Key: "$match", Value: bson.D{}}}})
	must(t, err)
	for _, command := range []bson.D{
		{{Key: "insert", Value: "things"}, {Key: "documents", Value: bson.A{bson.D{}}}},
		{{Key: "aggregate", Value: "things"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$out", Value: "copy"}}}}, {Key: "cursor", Value: bson.D{}}},
		{{Key: "create", Value: "more"}},
	} {
		short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if err := h.db.RunCommand(short, command).Err(); !mongo.IsTimeout(err) {
			t.Errorf("%v: got %v, want a timeout", command, err)
		}
		cancel()
	}
}

func TestPace_AResumedStreamWaitsWithinItsAggregate(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("things")
	_, err := coll.InsertOne(t.Context(), bson.D{})
	must(t, err)
	h.engine.SetPace(engine.Pace{ResumePerEntry: time.Hour})
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = coll.Watch(short, mongo.Pipeline{}, options.ChangeStream().SetStartAtOperationTime(&bson.Timestamp{T: uint32(time.Now().Unix()) - 60, I: 1}))
	if !mongo.IsTimeout(err) {
		t.Errorf("got %v, want a timeout", err)
	}
	stream, err := coll.Watch(t.Context(), mongo.Pipeline{})
	must(t, err)
	must(t, stream.Close(t.Context()))
}

func TestPace_ConnectionsBeyondTheLimitAreRefused(t *testing.T) {
	t.Parallel()
	h := startStoppable(t, engine.New(engine.Config{}))
	h.server.SetMaxConnections(1)
	client := h.connect(t, options.Client().SetServerSelectionTimeout(300*time.Millisecond))
	if client.Ping(t.Context(), nil) == nil {
		t.Error("got an answer although the monitor has the only connection")
	}
	h.server.SetMaxConnections(0)
	must(t, h.connect(t).Ping(t.Context(), nil))
}
