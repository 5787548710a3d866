package mongoserver_test

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
)

// answer is a command and what its answer must have, both in Extended JSON. The
// names of what it must have are paths; null is for what must not be there.
type answer struct{ command, has string }

// ask runs commands one after another and compares the answers.
func ask(t *testing.T, db *mongo.Database, answers []answer) {
	t.Helper()
	for _, a := range answers {
		var command, has bson.D
		must(t, bson.UnmarshalExtJSON([]byte(a.command), false, &command))
		must(t, bson.UnmarshalExtJSON([]byte(a.has), false, &has))
		reply, err := db.RunCommand(t.Context(), command, options.RunCmd().SetReadPreference(readpref.Nearest())).Raw()
		if refused, ok := errors.AsType[mongo.CommandError](err); ok {
			reply = refused.Raw
		} else if err != nil && reply == nil {
			t.Fatalf("%s: %v", a.command, err)
		}
		for _, want := range has {
			got, err := reply.LookupErr(strings.Split(want.Key, ".")...)
			if want.Value == nil {
				if err == nil {
					t.Errorf("%s: got %s %v, want none", a.command, want.Key, got)
				}
				continue
			}
			wanted := extendedJSON(t, want.Value)
			if err != nil {
				t.Errorf("%s: got no %s in %v, want %s", a.command, want.Key, reply, wanted)
			} else if have := extendedJSON(t, got); have != wanted {
				t.Errorf("%s: got %s %s, want %s", a.command, want.Key, have, wanted)
			}
		}
	}
}

func extendedJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v}}, false, false)
	must(t, err)
	return string(text)
}

// https://www.mongodb.com/docs/manual/reference/command/find/ and its kind, field let.
func TestLet_VariablesOfACommandAreReadByItsExpressions(t *testing.T) {
	t.Parallel()
	ask(t, startVersion(t, "5.0").db, []answer{
		{`{"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}, {"_id": 3, "a": 3}]}`, `{"n": 3}`},
		{`{"find": "c", "filter": {"$expr": {"$eq": ["$a", "$$x"]}}, "let": {"x": {"$add": [1, 1]}}}`, `{"cursor.firstBatch": [{"_id": 2, "a": 2}]}`},
		{`{"find": "c", "limit": 1, "projection": {"v": "$$y"}, "let": {"x": 2, "y": {"$multiply": ["$$x", 5]}}}`, `{"cursor.firstBatch": [{"_id": 1, "v": 10}]}`},
		{`{"find": "c", "limit": 1, "projection": {"v": "$$x"}, "let": {"x": {"$map": {"input": [1, 2], "in": {"$add": ["$$this", 1]}}}}}`, `{"cursor.firstBatch": [{"_id": 1, "v": [2, 3]}]}`},
		{`{"find": "c", "limit": 1, "projection": {"v": "$$x"}, "let": {"x": "$$REMOVE"}}`, `{"cursor.firstBatch": [{"_id": 1}]}`},
		{
			`{"aggregate": "c", "pipeline": [{"$limit": 1}, {"$lookup": {"from": "c", "let": {"z": "$a"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$a", "$$x"]}}}, {"$project": {"q": "$$z"}}], "as": "l"}}], "cursor": {}, "let": {"x": 2}}`,
			`{"cursor.firstBatch": [{"_id": 1, "a": 1, "l": [{"_id": 2, "q": 1}]}]}`,
		},
		{`{"update": "c", "updates": [{"q": {"$expr": {"$eq": ["$a", "$$x"]}}, "u": [{"$set": {"v": "$$y", "w": "$$x"}}], "c": {"y": 5}}], "let": {"x": 2, "y": 6}}`, `{"nModified": 1}`},
		{`{"find": "c", "filter": {"_id": 2}}`, `{"cursor.firstBatch": [{"_id": 2, "a": 2, "v": 5, "w": 2}]}`},
		{`{"findAndModify": "c", "query": {"$expr": {"$eq": ["$a", "$$x"]}}, "update": [{"$set": {"v": "$$x"}}], "new": true, "let": {"x": 3}}`, `{"value": {"_id": 3, "a": 3, "v": 3}}`},
		{`{"explain": {"delete": "c", "deletes": [{"q": {"$expr": {"$eq": ["$a", "$$x"]}}, "limit": 0}], "let": {"x": 3}}}`, `{"executionStats.executionStages.nWouldDelete": 1}`},
		{`{"delete": "c", "deletes": [{"q": {"$expr": {"$eq": ["$a", "$$x"]}}, "limit": 0}], "let": {"x": 3}}`, `{"n": 1}`},
		{`{"find": "c", "let": 5}`, `{"code": 14}`},
		{`{"find": "c", "let": {"X": 5}}`, `{"code": 16867}`},
		{`{"find": "c", "let": {"x": "$$y", "y": 1}}`, `{"code": 17276}`},
		{`{"find": "c", "let": {"x": "$a"}}`, `{"code": 4890500}`},
		{`{"find": "c", "let": {"x": "$$ROOT"}}`, `{"code": 4890500}`},
		{`{"insert": "c", "documents": [{}], "let": {"x": 1}}`, `{"code": 40415}`},
	})
	ask(t, startVersion(t, "4.4").db, []answer{{`{"find": "c", "let": {"x": 1}}`, `{"code": 9}`}, {`{"update": "c", "updates": [], "let": {"x": 1}}`, `{"code": 40415}`}})
}

// https://www.mongodb.com/docs/v4.4/core/views/#restrictions
func TestAView_RefusesWhatAnAggregationCannotDo(t *testing.T) {
	t.Parallel()
	ask(t, startVersion(t, "4.4").db, []answer{
		{`{"insert": "c", "documents": [{"_id": "a"}, {"_id": "B"}, {"_id": "c"}]}`, `{"n": 3}`},
		{`{"create": "v", "viewOn": "c", "pipeline": [], "collation": {"locale": "en", "strength": 2}}`, `{"ok": 1.0}`},
		{`{"create": "w", "viewOn": "c", "pipeline": []}`, `{"ok": 1.0}`},
		{`{"find": "v", "filter": {"_id": "b"}}`, `{"cursor.firstBatch": [{"_id": "B"}]}`},
		{`{"find": "v", "filter": {"_id": "b"}, "collation": {"locale": "en", "strength": 2}}`, `{"cursor.firstBatch": [{"_id": "B"}]}`},
		{`{"aggregate": "v", "pipeline": [{"$match": {"_id": "b"}}], "cursor": {}}`, `{"cursor.firstBatch": [{"_id": "B"}]}`},
		{`{"count": "v", "query": {"_id": "b"}}`, `{"n": 1}`},
		{`{"count": "w", "query": {"_id": "b"}, "collation": {"locale": "simple"}}`, `{"n": 0}`},
		{`{"find": "v", "collation": {"locale": "fr"}}`, `{"code": 167}`},
		{`{"find": "w", "collation": {"locale": "fr"}}`, `{"code": 167}`},
		{`{"count": "v", "collation": {"locale": "simple"}}`, `{"code": 167}`},
		{`{"aggregate": "w", "pipeline": [], "cursor": {}, "collation": {"locale": "fr"}}`, `{"code": 167}`},
		{`{"explain": {"find": "w", "collation": {"locale": "fr"}}}`, `{"code": 167}`},
		{`{"find": "w", "tailable": true}`, `{"code": 168}`},
		{`{"find": "w", "returnKey": true}`, `{"code": 168}`},
		{`{"find": "w", "showRecordId": true}`, `{"code": 168}`},
		{`{"find": "w", "noCursorTimeout": true}`, `{"code": 168}`},
		{`{"find": "w", "allowPartialResults": true}`, `{"code": 168}`},
		{`{"find": "w", "sort": {"$natural": 1}}`, `{"code": 168}`},
		{`{"find": "w", "min": {"_id": 1}, "hint": {"_id": 1}}`, `{"code": 168}`},
		{`{"find": "w", "singleBatch": true, "limit": 2}`, `{"code": 168}`},
		{`{"find": "w", "singleBatch": true, "limit": 1}`, `{"cursor.firstBatch": [{"_id": "a"}]}`},
	})
}

// https://www.mongodb.com/docs/v4.4/reference/command/reIndex/, fsync, profile.
func TestUpkeep_IsDoneOrRefusedByName(t *testing.T) {
	t.Parallel()
	old, current := startVersion(t, "4.4"), startVersion(t, "8.0")
	ask(t, old.db, []answer{
		{`{"insert": "c", "documents": [{"_id": 1}]}`, `{"n": 1}`},
		{`{"create": "v", "viewOn": "c", "pipeline": []}`, `{"ok": 1.0}`},
		{`{"reIndex": "c"}`, `{"nIndexesWas": 1, "nIndexes": 1, "indexes.0": {"v": 2, "key": {"_id": 1}, "name": "_id_"}}`},
		{`{"reIndex": "v"}`, `{"code": 166}`},
		{`{"reIndex": "nosuch"}`, `{"code": 26}`},
		{`{"profile": -1}`, `{"was": 0, "slowms": 100}`},
		{`{"profile": 0}`, `{"was": 0}`},
		{`{"profile": 0, "sampleRate": 0.5}`, `{"code": 238}`},
	})
	ask(t, old.client.Database("admin"), []answer{
		{`{"fsync": 1}`, `{"numFiles": 1}`},
		{`{"fsyncUnlock": 1}`, `{"code": 20}`},
	})
	ask(t, current.db, []answer{{`{"reIndex": "c"}`, `{"code": 20}`}, {`{"resetError": 1}`, `{"code": 59}`}})
}

// https://www.mongodb.com/docs/v4.4/reference/command/fsync/
func TestFsync_WithALockKeepsWritesOutUntilItIsTakenBack(t *testing.T) {
	t.Parallel()
	h := startVersion(t, "4.4")
	ask(t, h.db, []answer{{`{"insert": "c", "documents": [{"_id": 1}]}`, `{"n": 1}`}})
	admin := h.client.Database("admin")
	ask(t, admin, []answer{
		{`{"fsync": 1, "lock": true}`, `{"lockCount": {"$numberLong": "1"}}`},
		{`{"fsync": 1, "lock": true}`, `{"lockCount": {"$numberLong": "2"}}`},
		{`{"currentOp": 1}`, `{"fsyncLock": true}`},
		{`{"fsyncUnlock": 1}`, `{"lockCount": {"$numberLong": "1"}}`},
	})
	ask(t, h.db, []answer{
		{`{"find": "c"}`, `{"cursor.firstBatch": [{"_id": 1}]}`},
		{`{"insert": "c", "documents": [{"_id": 2}], "maxTimeMS": 5}`, `{"code": 50}`},
		{`{"create": "d", "maxTimeMS": 5}`, `{"code": 50}`},
	})
	written := make(chan error, 1)
	go func() {
		_, err := h.db.Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 3}})
		written <- err
	}()
	ask(t, admin, []answer{{`{"fsyncUnlock": 1}`, `{"lockCount": {"$numberLong": "0"}}`}, {`{"currentOp": 1}`, `{"fsyncLock": null}`}})
	must(t, <-written)
	ask(t, h.db, []answer{{`{"count": "c"}`, `{"n": 2}`}})
}

// https://www.mongodb.com/docs/v4.4/reference/command/profile/
func TestProfile_NotesTheCommandsOfADatabase(t *testing.T) {
	t.Parallel()
	h := startVersion(t, "4.4")
	noted := `{"count": "system.profile", "query": {"ns": "test.c", "op": "query", "command.comment": "mine", "command.find": "c"}}`
	ask(t, h.db, []answer{
		{`{"insert": "c", "documents": [{"_id": 1}]}`, `{"n": 1}`},
		{`{"profile": 1, "slowms": 100000}`, `{"was": 0, "slowms": 100}`},
		{`{"find": "c", "comment": "mine"}`, `{"ok": 1.0}`},
		{`{"profile": -1}`, `{"was": 1, "slowms": 100000}`},
		{noted, `{"n": 0}`},
		{`{"profile": 2, "slowms": 100}`, `{"was": 1}`},
		{`{"find": "c", "comment": "mine"}`, `{"ok": 1.0}`},
		{`{"find": "c", "filter": {"$nosuch": 1}}`, `{"code": 2}`},
		{noted, `{"n": 1}`},
		{`{"count": "system.profile", "query": {"command.filter.$nosuch": 1}}`, `{"n": 1}`},
		{`{"insert": "system.profile", "documents": [{}]}`, `{"code": 73}`},
		{`{"drop": "system.profile"}`, `{"code": 20}`},
		{`{"profile": 0}`, `{"was": 2}`},
		{`{"find": "c", "comment": "mine"}`, `{"ok": 1.0}`},
		{noted, `{"n": 1}`},
		{`{"listCollections": 1, "filter": {"name": "system.profile"}}`, `{"cursor.firstBatch.0.options": {"capped": true, "size": 1048576}}`},
		{`{"drop": "system.profile"}`, `{"ok": 1.0}`},
	})
	ask(t, h.client.Database("other"), []answer{{`{"profile": -1}`, `{"was": 0}`}})
}

// What is written without an acknowledgement is there for getLastError.
func TestGetLastError_KnowsOfUnacknowledgedWrites(t *testing.T) {
	t.Parallel()
	h := startVersion(t, "4.4")
	c := newRawClient(t, h.server.Addr().String())
	const moreToCome = 2
	send := func(text string, flags uint32) bson.Raw {
		t.Helper()
		var command bson.D
		must(t, bson.UnmarshalExtJSON([]byte(text), false, &command))
		body, err := bson.Marshal(append(command, bson.E{Key: "$db", Value: "test"}))
		must(t, err)
		m := message{body: body, flags: flags}
		if flags != 0 {
			_, err := c.nc.Write(m.encode())
			must(t, err)
			return nil
		}
		reply, err := c.roundTrip(m, stepLimit)
		must(t, err)
		return reply
	}
	send(`{"insert": "c", "documents": [{"_id": 1}]}`, 0)
	send(`{"update": "c", "updates": [{"q": {}, "u": {"$set": {"i": 2}}}], "writeConcern": {"w": 0}}`, moreToCome)
	if reply := send(`{"getLastError": 1}`, 0); !reply.Lookup("updatedExisting").Boolean() {
		t.Errorf("got %s, want updatedExisting", reply)
	}
	send(`{"insert": "c", "documents": [{"_id": 1}], "writeConcern": {"w": 0}}`, moreToCome)
	if reply := send(`{"getLastError": 1}`, 0); reply.Lookup("code").Int32() != 11000 {
		t.Errorf("got %s, want the duplicate key", reply)
	}
	send(`{"insert": "c", "documents": [{"_id": 1}], "writeConcern": {"w": 0}}`, moreToCome)
	send(`{"resetError": 1}`, 0)
	if reply := send(`{"getLastError": 1}`, 0); reply.Lookup("err").Type != bson.TypeNull {
		t.Errorf("got %s, want no error after resetError", reply)
	}
}

// https://github.com/mongodb/specifications: drivers set the fail point
// maxTimeAlwaysTimeOut to try their time limits.
func TestFailPoint_MaxTimeAlwaysTimeOutEndsWhatHasALimit(t *testing.T) {
	t.Parallel()
	h := startVersion(t, "4.4")
	admin := h.client.Database("admin")
	ask(t, h.db, []answer{{`{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]}`, `{"n": 3}`}})
	limited := openCursor(t, h.db, `{"find": "c", "batchSize": 1, "maxTimeMS": 60000}`)
	unlimited := openCursor(t, h.db, `{"find": "c", "batchSize": 1}`)
	ask(t, admin, []answer{{`{"configureFailPoint": "maxTimeAlwaysTimeOut", "mode": "alwaysOn"}`, `{"ok": 1.0}`}})
	ask(t, h.db, []answer{
		{`{"find": "c", "maxTimeMS": 60000}`, `{"code": 50}`},
		{`{"count": "c", "maxTimeMS": 60000}`, `{"code": 50}`},
		{`{"count": "c"}`, `{"n": 3}`},
		{`{"getMore": ` + limited + `, "collection": "c"}`, `{"code": 50}`},
		{`{"getMore": ` + unlimited + `, "collection": "c"}`, `{"ok": 1.0}`},
	})
	ask(t, admin, []answer{{`{"configureFailPoint": "maxTimeAlwaysTimeOut", "mode": "off"}`, `{"ok": 1.0}`}})
	ask(t, h.db, []answer{{`{"count": "c", "maxTimeMS": 60000}`, `{"n": 3}`}})
}

// openCursor gives a cursor's id, in Extended JSON.
func openCursor(t *testing.T, db *mongo.Database, text string) string {
	t.Helper()
	var command bson.D
	must(t, bson.UnmarshalExtJSON([]byte(text), false, &command))
	reply, err := db.RunCommand(t.Context(), command).Raw()
	must(t, err)
	id, err := bson.MarshalExtJSON(bson.D{{Key: "id", Value: reply.Lookup("cursor", "id")}}, true, false)
	must(t, err)
	return strings.TrimSuffix(strings.TrimPrefix(string(id), `{"id":`), "}")
}

// Monitoring reads these fields (https://www.mongodb.com/docs/database-tools/mongostat/#fields).
func TestServerStatus_HasWhatMonitorsRead(t *testing.T) {
	t.Parallel()
	h := startVersion(t, "4.4")
	ask(t, h.client.Database("admin"), []answer{{`{"serverStatus": 1}`, `{
		"opcounters.insert": {"$numberLong": "0"}, "opcountersRepl.insert": {"$numberLong": "0"}, "globalLock.currentQueue.total": 0,
		"globalLock.activeClients.writers": 0, "mem.bits": 64, "mem.supported": true, "repl.ismaster": true, "repl.secondary": false
	}`}})
	reply, err := h.db.RunCommand(t.Context(), bson.D{{Key: "serverStatus", Value: 1}}).Raw()
	must(t, err)
	in, out := reply.Lookup("network", "bytesIn").Int64(), reply.Lookup("network", "bytesOut").Int64()
	if in <= 0 || out <= in || reply.Lookup("mem", "resident").Int32() <= 0 {
		t.Errorf("got %d bytes in, %d out, %v, want some of each", in, out, reply.Lookup("mem"))
	}
	ask(t, h.client.Database("admin"), []answer{
		{`{"replSetStepDown": 60, "force": true}`, `{"ok": 1.0}`},
		{`{"serverStatus": 1}`, `{"repl.ismaster": false, "repl.secondary": true, "repl.primary": null}`},
	})
}

// https://www.mongodb.com/docs/v4.4/reference/bson-types/#timestamps
func TestEmptyTimestamps_AreFilledInInsertsAndReplacements(t *testing.T) {
	t.Parallel()
	empty := `{"$timestamp": {"t": 0, "i": 0}}`
	ask(t, startVersion(t, "4.4").db, []answer{
		{`{"insert": "c", "documents": [{"_id": 1, "t": ` + empty + `, "d": {"t": ` + empty + `}}]}`, `{"n": 1}`},
		{`{"update": "c", "updates": [{"q": {"_id": 2}, "u": {"t": ` + empty + `}, "upsert": true}]}`, `{"upserted.0._id": 2}`},
		{`{"update": "c", "updates": [{"q": {"_id": 2}, "u": {"n": 1, "t": ` + empty + `}}]}`, `{"nModified": 1}`},
		{`{"findAndModify": "c", "query": {"_id": 3}, "update": {"t": ` + empty + `}, "upsert": true}`, `{"ok": 1.0}`},
		{`{"count": "c", "query": {"t": {"$gt": ` + empty + `}}}`, `{"n": 3}`},
		{`{"count": "c", "query": {"d.t": ` + empty + `}}`, `{"n": 1}`},
		{`{"update": "c", "updates": [{"q": {"_id": 4}, "u": {"$set": {"t": ` + empty + `}}, "upsert": true}]}`, `{"upserted.0._id": 4}`},
		{`{"update": "c", "updates": [{"q": {"_id": 5}, "u": [{"$set": {"t": ` + empty + `}}], "upsert": true}]}`, `{"upserted.0._id": 5}`},
		{`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"t": ` + empty + `}}}]}`, `{"nModified": 1}`},
		{`{"count": "c", "query": {"t": ` + empty + `}}`, `{"n": 3}`},
	})
}

// https://github.com/mongodb/mongo/blob/v4.4/src/mongo/db/catalog/index_key_validate.cpp
func TestIndexes_OptionsThatDoNotGoTogetherAreRefused(t *testing.T) {
	t.Parallel()
	create := func(spec string) string { return `{"createIndexes": "c", "indexes": [` + spec + `]}` }
	old, current := startVersion(t, "4.4"), startVersion(t, "8.0")
	ask(t, old.db, []answer{
		{create(`{"key": {"a": 1, "b": 1}, "name": "x", "expireAfterSeconds": 1}`), `{"code": 67}`},
		{create(`{"key": {"$**": 1, "a": 1}, "name": "x"}`), `{"code": 67}`},
		{create(`{"key": {"a.$**": 1}, "name": "x", "unique": true}`), `{"code": 67}`},
		{create(`{"key": {"$**": 1}, "name": "x", "sparse": true}`), `{"code": 67}`},
		{create(`{"key": {"$**": 1}, "name": "x", "expireAfterSeconds": 1}`), `{"code": 67}`},
		{create(`{"key": {"a": 1}, "name": "x", "wildcardProjection": {"a": 1}}`), `{"code": 2}`},
		{create(`{"key": {"a.$**": 1}, "name": "x", "wildcardProjection": {"a": 1}}`), `{"code": 9}`},
		{create(`{"key": {"$**": 1}, "name": "x", "wildcardProjection": {}}`), `{"code": 9}`},
		{create(`{"key": {"$**": 1}, "name": "x", "wildcardProjection": 1}`), `{"code": 14}`},
		{create(`{"key": {"$**": 1}, "name": "x", "wildcardProjection": {"a": 1}}`), `{"ok": 1.0}`},
		{create(`{"key": {"$**": "text"}, "name": "t", "expireAfterSeconds": 10}`), `{"ok": 1.0}`},
		{create(`{"key": {"a": 1}, "name": "a"}`), `{"ok": 1.0}`},
		{`{"collMod": "c", "index": {"name": "a", "expireAfterSeconds": 5}}`, `{"code": 72}`},
	})
	itself := `{"renameCollection": "test.c", "to": "test.c"}`
	ask(t, old.client.Database("admin"), []answer{{itself, `{"code": 48}`}})
	ask(t, current.db, []answer{
		{create(`{"key": {"a": 1}, "name": "a"}, {"key": {"a": 1, "b": 1}, "name": "ab"}`), `{"ok": 1.0}`},
		{`{"collMod": "c", "index": {"name": "_id_", "expireAfterSeconds": 5}}`, `{"code": 72}`},
		{`{"collMod": "c", "index": {"name": "ab", "expireAfterSeconds": 5}}`, `{"code": 72}`},
		{`{"collMod": "c", "index": {"name": "a", "expireAfterSeconds": 5}}`, `{"expireAfterSeconds_old": null, "expireAfterSeconds_new": 5}`},
		{`{"listIndexes": "c"}`, `{"cursor.firstBatch.1.expireAfterSeconds": 5}`},
	})
	ask(t, current.client.Database("admin"), []answer{{itself, `{"code": 20}`}})
}
