package watch

import (
	"reflect"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/validate"
)

type d = bson.D

func write(t *testing.T, op string, fields ...bson.E) change {
	t.Helper()
	doc := append(d{{Key: "operationType", Value: op}, {Key: "documentKey", Value: d{{Key: "_id", Value: "a"}}}}, fields...)
	raw, err := bson.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return change{raw}
}

func full(doc d) bson.E { return bson.E{Key: "fullDocument", Value: doc} }

func updated(doc d) bson.E {
	return bson.E{Key: "updateDescription", Value: d{{Key: "updatedFields", Value: doc}}}
}

func relay(version int64) d { return d{{Key: "aggregateVersion", Value: version}} }

func TestWatch_AppliesAreTakenFromEveryKindOfWrite(t *testing.T) {
	t.Parallel()
	var told []validate.Apply
	a := newApplies(func(v validate.Apply) { told = append(told, v) })
	a.add(write(t, "insert", full(d{{Key: "_id", Value: "a"}, {Key: "_relay", Value: relay(1)}})))
	a.add(write(t, "update", updated(d{{Key: "_relay.aggregateVersion", Value: int32(2)}})))
	a.add(write(t, "update", updated(d{{Key: "_relay", Value: relay(3)}})))
	a.add(write(t, "update", updated(d{{Key: "unrelated", Value: 1}})))
	a.add(write(t, "replace", full(d{{Key: "_relay", Value: append(relay(4), bson.E{Key: "by", Value: "p/1"})}})))
	a.add(write(t, "update", updated(d{{Key: "_relay.aggregateVersion", Value: int64(5)}})))
	a.add(write(t, "update", updated(d{{Key: "_relay.updatedAt", Value: time.Now()}, {Key: "n", Value: 2}})))
	a.add(write(t, "update", updated(d{{Key: "_relay.halted", Value: true}})))
	a.add(write(t, "update", updated(d{{Key: "_relay.aggregateVersion", Value: int64(6)}, {Key: "_relay.by", Value: "q/1"}})))
	a.add(write(t, "update", bson.E{Key: "clusterTime", Value: bson.Timestamp{T: 70, I: 3}}, updated(d{{Key: "_relay", Value: relay(7)}})))
	a.add(write(t, "delete"))
	want := []validate.Apply{
		{Document: "a", Version: 1},
		{Document: "a", Version: 2},
		{Document: "a", Version: 3},
		{Document: "a", Version: 4, Hold: "p/1"},
		{Document: "a", Version: 5, Hold: "p/1"},
		{Document: "a", Version: 5, Hold: "p/1"},
		{Document: "a", Version: 6, Hold: "q/1"},
		{Document: "a", Version: 7, At: 70},
	}
	if got := a.History(); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(told, want) {
		t.Errorf("history: got %v, told of %v, want %v", got, told, want)
	}
}

func TestWatch_ACheckpointKeepsWhatAWriteLeavesAlone(t *testing.T) {
	t.Parallel()
	c := newStates(checkpointAfter)
	c.add(write(t, "insert", full(d{{Key: "term", Value: int64(1)}, {Key: "owner", Value: "p"}})))
	c.add(write(t, "update", bson.E{Key: "clusterTime", Value: bson.Timestamp{T: 70, I: 3}}, updated(d{{Key: "position", Value: "p1"}})))
	c.add(write(t, "update", updated(d{{Key: "updatedAt", Value: time.Now()}})))
	c.add(write(t, "update", updated(d{{Key: "term", Value: int64(2)}, {Key: "owner", Value: "q"}})))
	want := []validate.Checkpoint{{Stream: "a", Owner: "p", Term: 1}, {Stream: "a", Owner: "p", Term: 1, Position: "p1", At: 70}, {Stream: "a", Owner: "q", Term: 2, Position: "p1", At: 70}}
	if got := c.History(); !reflect.DeepEqual(got, want) {
		t.Errorf("history:\ngot  %v\nwant %v", got, want)
	}
}

func TestWatch_ALeaseIsFollowedThroughTakingRenewalAndRelease(t *testing.T) {
	t.Parallel()
	at := func(s int64) time.Time { return time.UnixMilli(1000 * s) }
	l := newStates(leaseAfter)
	l.add(write(t, "insert", full(d{{Key: "leaderId", Value: "p1"}, {Key: "incarnation", Value: "x"}, {Key: "heartbeatAt", Value: at(1)}, {Key: "expiresAt", Value: at(7)}})))
	l.add(write(t, "update", updated(d{{Key: "heartbeatAt", Value: at(3)}, {Key: "expiresAt", Value: at(9)}})))
	l.add(write(t, "replace", full(d{{Key: "leaderId", Value: ""}, {Key: "incarnation", Value: ""}, {Key: "heartbeatAt", Value: at(3)}, {Key: "expiresAt", Value: at(5)}})))
	want := []validate.Holding{
		{Lease: "a", Leader: "p1", Incarnation: "x", From: at(1), Until: at(7)},
		{Lease: "a", Leader: "p1", Incarnation: "x", From: at(3), Until: at(9)},
		{Lease: "a", From: at(3), Until: at(5)},
	}
	if got := l.History(); !reflect.DeepEqual(got, want) {
		t.Errorf("history:\ngot  %v\nwant %v", got, want)
	}
}
