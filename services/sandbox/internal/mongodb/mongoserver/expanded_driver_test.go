package mongoserver_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// nextEvents gives the next n events of a stream, without what differs from run
// to run, in Extended JSON.
func nextEvents(t *testing.T, stream *mongo.ChangeStream, n int) []string {
	t.Helper()
	var all []string
	for range n {
		if !stream.Next(t.Context()) {
			t.Fatal(stream.Err())
		}
		event := without(stream.Current, "_id", "clusterTime", "wallTime", "ns", "documentKey", "lsid", "txnNumber")
		for i := range event {
			if event[i].Key == "collectionUUID" {
				event[i].Value = len(event[i].Value.(bson.Binary).Data)
			}
			if state, ok := event[i].Value.(bson.D); ok && event[i].Key == "stateBeforeChange" {
				state[0].Value = state[0].Value.(bson.D)[1:] // without the id
			}
		}
		all = append(all, extendedJSON(t, event))
	}
	return all
}

func compareEvents(t *testing.T, stream *mongo.ChangeStream, want ...string) {
	t.Helper()
	for i, got := range nextEvents(t, stream, len(want)) {
		if wanted := `{"v":` + want[i] + `}`; got != wanted {
			t.Errorf("event %d:\ngot  %s\nwant %s", i, got, wanted)
		}
	}
}

// What a pipeline changed is told by path since 5.0
// (https://www.mongodb.com/docs/v5.0/reference/change-events/update/).
func TestStreams_TellAPipelinesChangesByVersion(t *testing.T) {
	t.Parallel()
	const long = `"0123456789012345678901234567890123456789"`
	for version, want := range map[string]string{
		"4.4": `{"operationType":"replace","fullDocument":{"_id":1,"l":` + long + `,"a":[1],"n":2}}`,
		"5.0": `{"operationType":"update","updateDescription":{"updatedFields":{"a":[1],"n":2},"removedFields":[],"truncatedArrays":[]}}`,
	} {
		h := startVersion(t, version)
		ask(t, h.db, []answer{{`{"insert": "c", "documents": [{"_id": 1, "l": ` + long + `, "a": [1, 2, 3], "n": 1}]}`, `{"n": 1}`}})
		stream, err := h.db.Collection("c").Watch(t.Context(), mongo.Pipeline{})
		must(t, err)
		defer stream.Close(t.Context())
		ask(t, h.db, []answer{
			{`{"update": "c", "updates": [{"q": {}, "u": [{"$set": {"a": [1], "n": 2}}]}]}`, `{"nModified": 1}`},
			{`{"findAndModify": "c", "query": {}, "update": [{"$set": {"a": [1, 2, 3], "n": 1}}]}`, `{"ok": 1.0}`},
			{`{"aggregate": "c", "pipeline": [{"$set": {"a": [1], "n": 2}}, {"$merge": "c"}], "cursor": {}}`, `{"ok": 1.0}`},
			{`{"update": "c", "updates": [{"q": {}, "u": {"x": 1}}]}`, `{"nModified": 1}`},
		})
		got := nextEvents(t, stream, 4)
		if wanted := `{"v":` + want + `}`; got[0] != wanted || got[2] != wanted {
			t.Errorf("%s:\ngot  %s\nand  %s\nwant %s", version, got[0], got[2], wanted)
		}
		if want := `{"v":{"operationType":"replace","fullDocument":{"_id":1,"x":1}}}`; got[3] != want {
			t.Errorf("%s: got %s, want %s", version, got[3], want)
		}
	}
}

// The cases are those of the server's jstests/change_streams/ddl_*.js.
func TestStreams_ShowExpandedEvents(t *testing.T) {
	t.Parallel()
	h := startVersion(t, "7.0")
	stream, err := h.db.Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetShowExpandedEvents(true))
	must(t, err)
	defer stream.Close(t.Context())
	ask(t, h.db, []answer{
		{`{"create": "c", "capped": true, "size": 4096}`, `{"ok": 1.0}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}, {"key": {"b": 1}, "name": "b", "expireAfterSeconds": 5}]}`, `{"ok": 1.0}`},
		{`{"insert": "c", "documents": [{"_id": 1, "a": {"0": 1}}]}`, `{"n": 1}`},
		{`{"update": "c", "updates": [{"q": {}, "u": {"$set": {"a.0": 2}}}]}`, `{"nModified": 1}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x"}, {"key": {"y": 1}, "name": "y"}]}`, `{"ok": 1.0}`},
		{`{"collMod": "c", "index": {"name": "b", "expireAfterSeconds": 9}}`, `{"ok": 1.0}`},
		{`{"collMod": "c", "validationLevel": "off"}`, `{"ok": 1.0}`},
		{`{"dropIndexes": "c", "index": ["x", "y"]}`, `{"ok": 1.0}`},
		{`{"create": "v", "viewOn": "c", "pipeline": []}`, `{"ok": 1.0}`},
		{`{"drop": "c"}`, `{"ok": 1.0}`},
	})
	index := func(names ...string) string {
		text := ""
		for _, name := range names {
			text += `,{"v":2,"key":{"` + name + `":1},"name":"` + name + `"}`
		}
		return `{"indexes":[` + text[1:] + `]}`
	}
	head := func(operation string) string { return `{"operationType":"` + operation + `","collectionUUID":16` }
	compareEvents(
		t, stream,
		head("create")+`,"operationDescription":{"capped":true,"size":4096,"idIndex":{"v":2,"key":{"_id":1},"name":"_id_"}}}`,
		head("createIndexes")+`,"operationDescription":`+index("a")+`}`,
		head("createIndexes")+`,"operationDescription":{"indexes":[{"v":2,"key":{"b":1},"name":"b","expireAfterSeconds":5}]}}`,
		head("insert")+`,"fullDocument":{"_id":1,"a":{"0":1}}}`,
		head("update")+`,"updateDescription":{"updatedFields":{"a.0":2},"removedFields":[],"truncatedArrays":[],"disambiguatedPaths":{"a.0":["a","0"]}}}`,
		head("createIndexes")+`,"operationDescription":`+index("x", "y")+`}`,
		head("modify")+`,"operationDescription":{"index":{"name":"b","expireAfterSeconds":9}},"stateBeforeChange":{"collectionOptions":{"capped":true,"size":4096},`+
			`"indexOptions":{"expireAfterSeconds":5,"hidden":false}}}`,
		head("modify")+`,"operationDescription":{"validationLevel":"off"},"stateBeforeChange":{"collectionOptions":{"capped":true,"size":4096}}}`,
		head("dropIndexes")+`,"operationDescription":`+index("x")+`}`,
		head("dropIndexes")+`,"operationDescription":`+index("y")+`}`,
		head("drop")+`}`,
	)
	ask(t, startVersion(t, "5.0").db, []answer{
		{`{"aggregate": 1, "pipeline": [{"$changeStream": {"showExpandedEvents": true}}], "cursor": {}}`, `{"code": 40415}`},
	})
}
