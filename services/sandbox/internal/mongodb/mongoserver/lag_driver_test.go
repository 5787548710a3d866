package mongoserver_test

import (
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/sandbox/internal/mongodb/engine"
)

// lagging starts a server a majority of whose members is an hour behind, with
// documents that a majority has in things and other.
func lagging(t *testing.T) *harness {
	t.Helper()
	h := start(t, engine.Config{})
	ask(t, h.db, []answer{
		{`{"insert": "things", "documents": [{"_id": 1}]}`, `{"n": 1}`},
		{`{"insert": "other", "documents": [{"_id": 1}]}`, `{"n": 1}`},
	})
	h.engine.SetPace(engine.Pace{Lag: time.Hour})
	return h
}

// https://www.mongodb.com/docs/manual/reference/write-concern/#wtimeout
func TestLag_AWriteThatIsNotWaitedForIsDoneAndSaysSo(t *testing.T) {
	t.Parallel()
	h := lagging(t)
	ask(t, h.db, []answer{
		{`{"insert": "things", "documents": [{"_id": 2}], "writeConcern": {"w": "majority", "wtimeout": 20}}`, `{
			"ok": 1.0, "n": 1, "writeConcernError.code": 64, "writeConcernError.codeName": "WriteConcernFailed",
			"writeConcernError.errmsg": "waiting for replication timed out", "writeConcernError.errInfo.wtimeout": true,
			"writeConcernError.errInfo.writeConcern.w": "majority", "writeConcernError.errInfo.writeConcern.wtimeout": 20}`},
		{`{"update": "things", "updates": [{"q": {"_id": 2}, "u": {"$set": {"n": 1}}}], "maxTimeMS": 20}`, `{
			"ok": 1.0, "nModified": 1, "writeConcernError.code": 50, "writeConcernError.codeName": "MaxTimeMSExpired"}`},
		{`{"findAndModify": "things", "query": {"_id": 2}, "remove": true, "writeConcern": {"w": "majority", "wtimeout": 20}}`, `{
			"ok": 1.0, "value": {"_id": 2, "n": 1}, "writeConcernError.code": 64}`},
		{`{"insert": "things", "documents": [{"_id": 3}], "writeConcern": {"w": 1, "wtimeout": 20}}`, `{"n": 1, "writeConcernError": null}`},
		{`{"insert": "things", "documents": [{"_id": 4}], "writeConcern": {"w": 1, "j": true}}`, `{"n": 1, "writeConcernError": null}`},
		{`{"find": "things", "sort": {"_id": 1}}`, `{"cursor.firstBatch": [{"_id": 1}, {"_id": 3}, {"_id": 4}]}`},
	})
}

func TestLag_ReadsOfAMajorityAreBehindAndSaySo(t *testing.T) {
	t.Parallel()
	h := lagging(t)
	const aggregate = `{"aggregate": "things", "pipeline": [%s], "cursor": {}, "readConcern": {"level": %q}}`
	joined := `{"$match": {"_id": 1}}, {"$lookup": {"from": "other", "pipeline": [{"$count": "n"}], "as": "of"}}, {"$project": {"of": 1}}`
	ask(t, h.db, []answer{
		{`{"insert": "things", "documents": [{"_id": 2}], "writeConcern": {"w": 1}}`, `{"n": 1}`},
		{`{"insert": "other", "documents": [{"_id": 2}], "writeConcern": {"w": 1}}`, `{"n": 1}`},
		{fmt.Sprintf(aggregate, `{"$count": "n"}`, "local"), `{"cursor.firstBatch": [{"n": 2}]}`},
		{fmt.Sprintf(aggregate, `{"$count": "n"}`, "majority"), `{"cursor.firstBatch": [{"n": 1}]}`},
		{fmt.Sprintf(aggregate, joined, "local"), `{"cursor.firstBatch": [{"_id": 1, "of": [{"n": 2}]}]}`},
		{fmt.Sprintf(aggregate, joined, "majority"), `{"cursor.firstBatch": [{"_id": 1, "of": [{"n": 1}]}]}`},
		{`{"count": "things", "readConcern": {"level": "linearizable"}, "maxTimeMS": 20}`, `{"ok": 0.0, "code": 50}`},
	})

	local, majority := operationTime(t, h.db, "local"), operationTime(t, h.db, "majority")
	if local.Compare(majority) <= 0 {
		t.Errorf("got the operation times %v of the primary and %v of a majority, want the second behind", local, majority)
	}
	status, err := h.client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "replSetGetStatus", Value: 1}}).Raw()
	must(t, err)
	hello, err := h.db.RunCommand(t.Context(), bson.D{{Key: "hello", Value: 1}}).Raw()
	must(t, err)
	for path, want := range map[*bson.Timestamp][]bson.RawValue{
		&local: {
			status.Lookup("optimes", "appliedOpTime", "ts"), status.Lookup("optimes", "durableOpTime", "ts"),
			status.Lookup("members", "0", "optime", "ts"), hello.Lookup("lastWrite", "opTime", "ts"), hello.Lookup("$clusterTime", "clusterTime"),
		},
		&majority: {
			status.Lookup("optimes", "lastCommittedOpTime", "ts"), status.Lookup("optimes", "readConcernMajorityOpTime", "ts"),
			hello.Lookup("lastWrite", "majorityOpTime", "ts"),
		},
	} {
		for i, v := range want {
			if at, n := v.Timestamp(); at != path.T || n != path.I {
				t.Errorf("got %d.%d in place %d, want %v", at, n, i, *path)
			}
		}
	}
	at := fmt.Sprintf(`{"$timestamp": {"t": %d, "i": %d}}`, local.T, local.I)
	ask(t, h.db, []answer{
		{`{"find": "things", "readConcern": {"level": "local", "afterClusterTime": ` + at + `}}`, `{"cursor.firstBatch": [{"_id": 1}, {"_id": 2}]}`},
		{`{"find": "things", "readConcern": {"level": "majority", "afterClusterTime": ` + at + `}, "maxTimeMS": 20}`, `{"ok": 0.0, "code": 50}`},
	})
	h.engine.SetPace(engine.Pace{})
	ask(t, h.db, []answer{
		{`{"find": "things", "readConcern": {"level": "majority", "afterClusterTime": ` + at + `}}`, `{"cursor.firstBatch": [{"_id": 1}, {"_id": 2}]}`},
	})
}

// Without a lag, too, a majority may have a write a little later than its client an answer.
// Whoever asks for what it has written gets it.
func TestReads_OfAMajorityThatWaitHaveWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	for i := range 20 {
		reply, err := h.db.RunCommand(t.Context(), bson.D{
			{Key: "insert", Value: "things"},
			{Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: i}}}},
			{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 1}}},
		}).Raw()
		must(t, err)
		at, n := reply.Lookup("operationTime").Timestamp()
		read := fmt.Sprintf(`{"level": "majority", "afterClusterTime": {"$timestamp": {"t": %d, "i": %d}}}`, at, n)
		if i%2 == 0 {
			read = `{"level": "linearizable"}`
		}
		ask(t, h.db, []answer{{
			fmt.Sprintf(`{"find": "things", "filter": {"_id": %d}, "readConcern": %s}`, i, read),
			fmt.Sprintf(`{"cursor.firstBatch": [{"_id": %d}]}`, i),
		}})
	}
}

// operationTime is that of a read.
func operationTime(t *testing.T, db *mongo.Database, level string) bson.Timestamp {
	t.Helper()
	reply, err := db.RunCommand(t.Context(), bson.D{
		{Key: "find", Value: "things"}, {Key: "readConcern", Value: bson.D{{Key: "level", Value: level}}},
	}).Raw()
	must(t, err)
	at, n := reply.Lookup("operationTime").Timestamp()
	return bson.Timestamp{T: at, I: n}
}

func TestLag_StreamsStandStillUntilAMajorityHasAWrite(t *testing.T) {
	t.Parallel()
	h := lagging(t)
	stream, err := h.db.Collection("things").Watch(t.Context(), mongo.Pipeline{},
		options.ChangeStream().SetFullDocument(options.UpdateLookup).SetMaxAwaitTime(20*time.Millisecond))
	must(t, err)
	defer stream.Close(t.Context())
	ask(t, h.db, []answer{
		{`{"update": "things", "updates": [{"q": {"_id": 1}, "u": {"$set": {"n": 1}}}], "writeConcern": {"w": 1}}`, `{"nModified": 1}`},
	})
	before := stream.ResumeToken()
	for range 3 {
		if stream.TryNext(t.Context()) || stream.Err() != nil {
			t.Fatalf("got %v and %v, want no event yet", stream.Current, stream.Err())
		}
	}
	if got := stream.ResumeToken(); got.String() != before.String() {
		t.Errorf("got the token %s, want it to stand still at %s", got, before)
	}
	h.engine.SetPace(engine.Pace{JournalInterval: time.Millisecond})
	if !stream.Next(t.Context()) || stream.Current.Lookup("fullDocument", "n").Int32() != 1 {
		t.Errorf("got %v and %v, want the update", stream.Current, stream.Err())
	}
}
