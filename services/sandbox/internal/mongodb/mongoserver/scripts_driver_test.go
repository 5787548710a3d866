package mongoserver_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// https://www.mongodb.com/docs/v4.4/reference/operator/query/where/
func TestScripts_WhereSelectsDocuments(t *testing.T) {
	t.Parallel()
	ask(t, startVersion(t, "4.4").db, []answer{
		{`{"insert": "c", "documents": [{"_id": 1, "a": 1, "b": 1}, {"_id": 2, "a": 1, "b": 2}, {"_id": 3, "a": {"$numberLong": "7"}, "b": 7}]}`, `{"n": 3}`},
		{`{"find": "c", "filter": {"$where": "this.a == this.b"}, "projection": {"_id": 1}}`, `{"cursor.firstBatch": [{"_id": 1}, {"_id": 3}]}`},
		{`{"find": "c", "filter": {"$where": "function() { return obj.b > 1 }", "a": 1}, "projection": {"_id": 1}}`, `{"cursor.firstBatch": [{"_id": 2}]}`},
		{`{"find": "c", "filter": {"$or": [{"_id": 1}, {"$where": {"$code": "var n = 7; return this.b == n;"}}]}, "projection": {"_id": 1}}`, `{"cursor.firstBatch": [{"_id": 1}, {"_id": 3}]}`},
		{`{"find": "c", "filter": {"$where": "var n = 2; this.b == n"}, "projection": {"_id": 1}}`, `{"cursor.firstBatch": [{"_id": 2}]}`},
		{`{"find": "c", "filter": {"$where": "() => obj._id == 2"}, "projection": {"_id": 1}}`, `{"cursor.firstBatch": [{"_id": 2}]}`},
		{`{"count": "c", "query": {"$where": "this.b > 1"}}`, `{"n": 2}`},
		{`{"distinct": "c", "key": "b", "query": {"$where": "this.b > 1"}}`, `{"values": [2, 7]}`},
		{`{"update": "c", "updates": [{"q": {"$where": "this.b == 2"}, "u": {"$set": {"c": 1}}}]}`, `{"nModified": 1}`},
		{`{"findAndModify": "c", "query": {"$where": "this.c"}, "update": {"$set": {"c": 2}}, "new": true}`, `{"value.c": 2}`},
		{`{"delete": "c", "deletes": [{"q": {"$where": "this.b == 2"}, "limit": 0}]}`, `{"n": 1}`},
		{`{"find": "c", "filter": {"$where": "nothing.a"}}`, `{"code": 139, "codeName": "JSInterpreterFailure", "errmsg": "ReferenceError: nothing is not defined"}`},
		{`{"find": "c", "filter": {"$where": "throw 'a fit'"}}`, `{"code": 139, "errmsg": "uncaught exception: a fit"}`},
		{`{"find": "c", "filter": {"$where": "function("}}`, `{"code": 139}`},
		{`{"find": "c", "filter": {"$where": 5}}`, `{"code": 2, "errmsg": "$where got bad type"}`},
		{`{"find": "c", "filter": {"$where": ""}}`, `{"code": 2, "errmsg": "code for $where cannot be empty"}`},
		{`{"find": "c", "filter": {"$where": {"$code": "true", "$scope": {}}}}`, `{"code": 4649201}`},
		{`{"find": "c", "filter": {"a": {"$elemMatch": {"$where": "true"}}}}`, `{"code": 2, "errmsg": "$where can only be applied to the top-level document"}`},
		{`{"aggregate": "c", "pipeline": [{"$match": {"$where": "true"}}], "cursor": {}}`, `{"code": 2, "errmsg": "$where is not allowed in this context"}`},
		{`{"create": "d", "validator": {"$where": "true"}}`, `{"code": 2, "errmsg": "$where is not allowed in this context"}`},
		{`{"create": "d", "validator": {"$expr": {"$function": {"body": "function() {}", "args": [], "lang": "js"}}}}`, `{"code": 4660800}`},
	})
}

// https://www.mongodb.com/docs/v4.4/reference/operator/aggregation/function/ and
// https://www.mongodb.com/docs/v4.4/reference/operator/aggregation/accumulator/
func TestScripts_ExpressionsAndAccumulatorsRun(t *testing.T) {
	t.Parallel()
	ask(t, startVersion(t, "4.4").db, []answer{
		{`{"insert": "c", "documents": [{"_id": 1, "a": 1, "s": [1, 2]}, {"_id": 2, "a": 1, "s": [3]}, {"_id": 3, "a": 2, "s": []}]}`, `{"n": 3}`},
		{
			`{"aggregate": "c", "pipeline": [{"$match": {"_id": 1}}, {"$project": {"v": {"$function": {"body": "function(s, k) { return {sum: Array.sum(s), k: k, s: s} }", "args": ["$s", "x"], "lang": "js"}}}}], "cursor": {}}`,
			`{"cursor.firstBatch": [{"_id": 1, "v": {"sum": 3.0, "k": "x", "s": [1, 2]}}]}`,
		},
		{`{"find": "c", "filter": {"$expr": {"$function": {"body": "function(s) { return s.length == 1 }", "args": ["$s"], "lang": "js"}}}}`, `{"cursor.firstBatch.0._id": 2}`},
		{
			`{"aggregate": "c", "cursor": {}, "pipeline": [{"$group": {"_id": "$a", "v": {"$accumulator": {"init": "function(from) { return {n: from} }", "initArgs": [10], "accumulate": "function(state, s) { state.n += s.length; return state }", "accumulateArgs": ["$s"], "merge": "function(a, b) { return {n: a.n + b.n} }", "finalize": "function(state) { return state.n }", "lang": "js"}}}}]}`,
			`{"cursor.firstBatch": [{"_id": 1, "v": 13.0}, {"_id": 2, "v": 10.0}]}`,
		},
		{`{"aggregate": "c", "pipeline": [{"$project": {"v": {"$function": {"body": "function() {}", "args": []}}}}], "cursor": {}}`, `{"code": 31418}`},
		{`{"aggregate": "c", "pipeline": [{"$project": {"v": {"$function": {"body": "$a", "args": [], "lang": "js"}}}}], "cursor": {}}`, `{"code": 31432}`},
		{`{"aggregate": "c", "pipeline": [{"$project": {"v": {"$function": {"body": "function() {}", "args": 1, "lang": "js"}}}}], "cursor": {}}`, `{"code": 31266}`},
		{`{"aggregate": "c", "pipeline": [{"$group": {"_id": 1, "v": {"$accumulator": {"init": "function() {}", "lang": "js"}}}}], "cursor": {}}`, `{"code": 4544708}`},
		{`{"update": "c", "updates": [{"q": {"_id": 1}, "u": [{"$set": {"a": {"$function": {"body": "function(a) { return a + 1 }", "args": ["$a"], "lang": "js"}}}}]}]}`, `{"nModified": 1}`},
	})
}

// https://www.mongodb.com/docs/v4.4/reference/command/mapReduce/
func TestScripts_MapReduce(t *testing.T) {
	t.Parallel()
	const functions = `"map": "function() { this.tags.forEach(t => emit(t, weight)) }", "reduce": {"$code": "function(key, values) { return Array.sum(values) }"}, "scope": {"weight": 1}`
	ask(t, startVersion(t, "4.4").db, []answer{
		{`{"insert": "c", "documents": [{"_id": 1, "tags": ["dog", "cat"]}, {"_id": 2, "tags": ["cat"]}, {"_id": 3, "tags": ["mouse", "cat", "dog"]}, {"_id": 4, "tags": []}]}`, `{"n": 4}`},
		{`{"mapReduce": "c", ` + functions + `, "out": {"inline": 1}}`, `{"results": [{"_id": "dog", "value": 2.0}, {"_id": "cat", "value": 3.0}, {"_id": "mouse", "value": 1.0}], "ok": 1.0}`},
		{`{"mapReduce": "c", ` + functions + `, "query": {"_id": {"$lt": 3}}, "sort": {"_id": -1}, "limit": 1, "finalize": "function(key, value) { return key + value }", "out": {"inline": 1}}`, `{"results": [{"_id": "cat", "value": "cat1"}]}`},
		{`{"mapReduce": "c", ` + functions + `, "out": "o"}`, `{"result": "o"}`},
		{`{"find": "o", "sort": {"_id": 1}}`, `{"cursor.firstBatch": [{"_id": "cat", "value": 3.0}, {"_id": "dog", "value": 2.0}, {"_id": "mouse", "value": 1.0}]}`},
		{`{"mapReduce": "c", ` + functions + `, "query": {"_id": 1}, "out": {"merge": "o"}}`, `{"result": "o"}`},
		{`{"find": "o", "sort": {"_id": 1}}`, `{"cursor.firstBatch": [{"_id": "cat", "value": 1.0}, {"_id": "dog", "value": 1.0}, {"_id": "mouse", "value": 1.0}]}`},
		{`{"mapReduce": "c", ` + functions + `, "out": {"reduce": "o"}}`, `{"result": "o"}`},
		{`{"find": "o", "sort": {"_id": 1}}`, `{"cursor.firstBatch": [{"_id": "cat", "value": 4.0}, {"_id": "dog", "value": 3.0}, {"_id": "mouse", "value": 2.0}]}`},
		{`{"mapReduce": "c", ` + functions + `, "out": {"replace": "o", "db": "elsewhere"}}`, `{"result": {"db": "elsewhere", "collection": "o"}}`},
		{`{"mapReduce": "c", "map": "function() { emit(this._id % 2 ? 'a' : 'A', 1) }", "reduce": "function(key, values) { return values.length }", "collation": {"locale": "en", "strength": 2}, "out": {"inline": 1}}`, `{"results": [{"_id": "a", "value": 4.0}]}`},
		{`{"mapReduce": "c", ` + functions + `}`, `{"code": 40414}`},
		{`{"mapReduce": "c", ` + functions + `, "out": {"db": "x"}}`, `{"code": 13522}`},
		{`{"mapReduce": "c", ` + functions + `, "out": {"inline": 1}, "unheard": 1}`, `{"code": 40415}`},
		{`{"mapReduce": "c", "map": {"$code": "1", "$scope": {}}, "reduce": "1", "out": {"inline": 1}}`, `{"code": 2, "errmsg": "'map' must be of string or code type"}`},
		{`{"mapReduce": "c", "map": "function() { emit(1) }", "reduce": "function() { emit(1, 1) }", "out": {"inline": 1}}`, `{"code": 139}`},
	})
}

// A value comes back as it went in.
func TestScripts_TypesOfBSONAreKept(t *testing.T) {
	t.Parallel()
	db := startVersion(t, "8.0").db
	want := bson.D{{Key: "_id", Value: bson.NewObjectID()}}
	for _, v := range []any{
		int32(5), int64(1) << 60, 2.5, "text\u2028\x00é", true, nil, bson.NewObjectID(), bson.DateTime(-5),
		bson.Binary{Subtype: 4, Data: []byte{1, 2, 3, 4, 255}},
		bson.Timestamp{T: 4294967295, I: 7},
		bson.Regex{Pattern: "a/b", Options: "i"},
		bson.Regex{Pattern: "(?<!x", Options: "x"},
		bson.MinKey{},
		bson.MaxKey{},
		bson.JavaScript("f()"),
		bson.CodeWithScope{Code: "g()", Scope: bson.D{{Key: "a", Value: int32(1)}}},
		bson.Undefined{},
		bson.DBPointer{DB: "x.y", Pointer: bson.NewObjectID()},
		bson.D{{Key: "b", Value: bson.A{int32(1), bson.D{}}}, {Key: "__proto__", Value: bson.D{{Key: "a", Value: "1"}}}},
		decimal(t, "1.10"), decimal(t, "NaN"),
	} {
		want = append(want, bson.E{Key: "v" + string(rune('a'+len(want))), Value: v})
	}
	_, err := db.Collection("c").InsertOne(t.Context(), want)
	must(t, err)
	cursor, err := db.Collection("c").Aggregate(t.Context(), mongo.Pipeline{
		{{Key: "$replaceWith", Value: bson.D{{Key: "$function", Value: bson.D{
			{Key: "body", Value: "function(doc) { return doc }"}, {Key: "args", Value: bson.A{"$$ROOT"}}, {Key: "lang", Value: "js"},
		}}}}},
	})
	must(t, err)
	var got []bson.Raw
	must(t, cursor.All(t.Context(), &got))
	wanted, err := bson.Marshal(want)
	must(t, err)
	if have := bson.Raw(wanted).String(); got[0].String() != have {
		t.Errorf("got %v\nwant %v", got[0], have)
	}
}

func decimal(t *testing.T, text string) bson.Decimal128 {
	t.Helper()
	d, err := bson.ParseDecimal128(text)
	must(t, err)
	return d
}

// Each script would take all memory, or all time. The next command is served.
func TestScripts_WhatAScriptTakesIsBounded(t *testing.T) {
	t.Parallel()
	db := startVersion(t, "8.0").db
	_, err := db.Collection("c").InsertOne(t.Context(), bson.D{{Key: "a", Value: 1}})
	must(t, err)
	for script, want := range map[string]string{
		"'x'.repeat(1e9)":                                   "JSInterpreterFailure",
		"new Array(1e9).fill(0)":                            "JSInterpreterFailure",
		"var a = []; while (true) a.push({x: 1})":           "JSInterpreterFailure",
		"var s = 'x'; while (true) s += s":                  "JSInterpreterFailure",
		"new ArrayBuffer(2e9)":                              "JSInterpreterFailure",
		"(function f() { return f() + 1 })()":               "JSInterpreterFailure",
		"Array.prototype.indexOf.call({length: 2**53}, 1)":  "JSInterpreterFailure",
		"var a = []; a.length = 4e9; a.indexOf(1)":          "JSInterpreterFailure",
		"var a = []; a.length = 4e9; [a].flat()":            "JSInterpreterFailure",
		"var a = []; a.length = 4e9; new Set(a)":            "MaxTimeMSExpired",
		"while (true) {}":                                   "MaxTimeMSExpired",
		"while (true) try { while (true) {} } catch (e) {}": "MaxTimeMSExpired",
		"[1, 2, 3].sort(() => { while (true) {} })":         "MaxTimeMSExpired",
		"/^(a+)+$/.test('a'.repeat(40) + 'b')":              "MaxTimeMSExpired",
		"/(?=(a+)+$)(a+)+$/.test('a'.repeat(40) + 'b')":     "MaxTimeMSExpired",
		"sleep(1e9)": "MaxTimeMSExpired",
		"var e = {next: Object, [Symbol.iterator]() { return this }}; new Set(e)": "MaxTimeMSExpired",
	} {
		limit := 600_000 // with the race detector a script is slow to take all memory
		if want == "MaxTimeMSExpired" {
			limit = 300
		}
		err := db.RunCommand(t.Context(), bson.D{
			{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "$where", Value: script}}}, {Key: "maxTimeMS", Value: limit},
		}).Err()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", script, err, want)
		}
	}
	n, err := db.Collection("c").CountDocuments(t.Context(), bson.D{})
	if err != nil || n != 1 {
		t.Errorf("got %d documents and %v, want 1", n, err)
	}
}

// More commands run scripts that do not end than there are engines; all end with
// their clients, and a script after them finds an engine.
func TestScripts_EndWithTheirClients(t *testing.T) {
	t.Parallel()
	db := startVersion(t, "8.0").db
	_, err := db.Collection("c").InsertOne(t.Context(), bson.D{{Key: "a", Value: 1}})
	must(t, err)
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error)
	const clients = 6
	for range clients {
		go func() {
			_, err := db.Collection("c").CountDocuments(ctx, bson.D{{Key: "$expr", Value: bson.D{{Key: "$function", Value: bson.D{
				{Key: "body", Value: "function() { while (true) {} }"}, {Key: "args", Value: bson.A{}}, {Key: "lang", Value: "js"},
			}}}}})
			ended <- err
		}()
	}
	for running := 0; running < clients; {
		var ops struct {
			Inprog []struct{ Command bson.Raw }
		}
		must(t, db.Client().Database("admin").RunCommand(t.Context(), bson.D{{Key: "currentOp", Value: 1}}).Decode(&ops))
		running = 0
		for _, op := range ops.Inprog {
			if op.Command.Lookup("aggregate").Type == bson.TypeString {
				running++
			}
		}
	}
	leave()
	for range clients {
		if err := <-ended; err == nil {
			t.Error("a script without an end ended")
		}
	}
	n, err := db.Collection("c").Find(t.Context(), bson.D{{Key: "$where", Value: "true"}}, options.Find())
	must(t, err)
	if !n.Next(t.Context()) {
		t.Errorf("got no document: %v", n.Err())
	}
}

func TestScripts_GoOnWithACursorAndLeaveNothing(t *testing.T) {
	t.Parallel()
	db := startVersion(t, "8.0").db
	for i := range 10 {
		_, err := db.Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}})
		must(t, err)
	}
	cursor, err := db.Collection("c").Find(t.Context(), bson.D{{Key: "$where", Value: "this._id % 2 == 0"}}, options.Find().SetBatchSize(2))
	must(t, err)
	var found []bson.D
	must(t, cursor.All(t.Context(), &found))
	if len(found) != 5 {
		t.Errorf("got %d documents, want 5", len(found))
	}
	must(t, db.RunCommand(t.Context(), bson.D{{Key: "count", Value: "c"}, {Key: "query", Value: bson.D{{Key: "$where", Value: "leak = 1; true"}}}}).Err())
	var count struct{ N int }
	must(t, db.RunCommand(t.Context(), bson.D{{Key: "count", Value: "c"}, {Key: "query", Value: bson.D{{Key: "$where", Value: "typeof leak == 'undefined'"}}}}).Decode(&count))
	if count.N != 10 {
		t.Errorf("a command saw the variables of the one before: %d of 10 documents", count.N)
	}
}

func TestScripts_AKilledCommandEnds(t *testing.T) {
	t.Parallel()
	db := startVersion(t, "8.0").db
	_, err := db.Collection("c").InsertOne(t.Context(), bson.D{{Key: "a", Value: 1}})
	must(t, err)
	ended := make(chan error, 1)
	go func() {
		ended <- db.RunCommand(t.Context(), bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "$where", Value: "while (true) {}"}}}}).Err()
	}()
	admin := db.Client().Database("admin")
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		var ops struct {
			Inprog []struct {
				OpID    int32
				Command bson.Raw
			}
		}
		must(t, admin.RunCommand(t.Context(), bson.D{{Key: "currentOp", Value: 1}}).Decode(&ops))
		for _, op := range ops.Inprog {
			if op.Command.Lookup("filter", "$where").Type == bson.TypeString {
				must(t, admin.RunCommand(t.Context(), bson.D{{Key: "killOp", Value: 1}, {Key: "op", Value: op.OpID}}).Err())
			}
		}
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "Interrupted") {
				t.Errorf("got %v, want Interrupted", err)
			}
			return
		case <-tick.C:
		}
	}
}
