package mongoserver_test

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Each table has what a real 4.4 answers by its sources and its own tests
// (https://github.com/mongodb/mongo, v4.4: src/mongo/db and jstests/core).

// create.idl, collection_options.cpp, coll_mod.cpp, jstests/core/create_collection.js.
func TestCreate_RefusesOptionsAsTheServerDoes(t *testing.T) {
	t.Parallel()
	ask(t, startVersion(t, "4.4").db, []answer{
		{`{"create": "x", "size": 4096}`, `{"code": 72}`},
		{`{"create": "x", "max": 10}`, `{"code": 72}`},
		{`{"create": "x", "collation": {}}`, `{"code": 2}`},
		{`{"create": "x", "collation": {"locale": "i-invalid"}}`, `{"code": 2}`},
		{`{"create": "x", "collation": {"locale": "en", "version": "9"}}`, `{"code": 161, "codeName": "IncompatibleCollationVersion"}`},
		{`{"create": "x", "viewOn": ""}`, `{"code": 2}`},
		{`{"create": "x", "pipeline": [{"$match": {}}]}`, `{"code": 2}`},
		{`{"create": "x", "storageEngine": {"wiredTiger": 5}}`, `{"code": 2}`},
		{`{"create": "x", "indexOptionDefaults": {"unique": true}}`, `{"code": 72}`},
		{`{"create": "x", "idIndex": 1}`, `{"code": 14}`},
		{`{"create": "x", "idIndex": {}}`, `{"code": 9}`},
		{`{"create": "x", "idIndex": {"key": {"a": 1}, "name": "a"}}`, `{"code": 2}`},
		{`{"create": "x", "idIndex": {"key": {"_id": 1}, "name": "_id_", "sparse": true}}`, `{"code": 197}`},
		{`{"create": "x", "idIndex": {"key": {"_id": 1}, "name": "_id_", "collation": {"locale": "fr"}}}`, `{"code": 2}`},
		{`{"create": "x", "idIndex": {"key": {"_id": 1}, "name": "_id_"}, "viewOn": "y"}`, `{"code": 72}`},
		{`{"create": "x", "idIndex": {"key": {"_id": 1}, "name": "_id_"}, "autoIndexId": true}`, `{"code": 72}`},
		{`{"create": "x", "validator": {"$nosuch": 1}, "validationLevel": "off"}`, `{"code": 2}`},
		{`{"create": "y", "pipeline": []}`, `{"ok": 1.0}`},
		{`{"create": "x", "autoIndexId": true, "validationAction": null}`, `{"note": "The autoIndexId option is deprecated and will be removed in a future release"}`},
		{`{"collMod": "x", "validator": {"$nosuch": 1}}`, `{"code": 2}`},
		{`{"collMod": "x", "validationAction": "warn", "validator": {"a": {"$nosuch": 1}}}`, `{"code": 2}`},
		{`{"collMod": "x", "index": {"name": "_id_", "expireAfterSeconds": 5, "nosuch": 1}}`, `{"code": 72}`},
		{`{"create": "z", "autoIndexId": false}`, `{"code": 50001}`},
		{`{"create": "z", "autoIndexId": 0}`, `{"code": 50001}`},
		{`{"create": "z", "collation": {"strength": 2}}`, `{"code": 4}`},
		{`{"create": "z", "collation": {"nosuch": 2}}`, `{"code": 4}`},
		{`{"create": "z", "collation": {"locale": ""}}`, `{"code": 2}`},
		{`{"create": "z", "collation": {"locale": 1}}`, `{"code": 14}`},
		{`{"create": "z", "changeStreamPreAndPostImages": {"enabled": true}}`, `{"code": 40415}`},
		{`{"create": "z", "recordPreImages": true, "viewOn": "x"}`, `{"code": 72}`},
		{`{"create": "v", "viewOn": "x"}`, `{"ok": 1.0}`},
		{`{"drop": "v"}`, `{"ok": 1.0, "nIndexesWas": null}`},
		{`{"drop": "x"}`, `{"nIndexesWas": 1}`},
		{`{"dropDatabase": 2}`, `{"code": 20}`},
		{`{"listCollections": 1, "cursor": {"nosuch": 1}}`, `{"code": 2}`},
		{`{"listIndexes": "y", "cursor": {"nosuch": 1}}`, `{"code": 2}`},
		{`{"find": "y", "filter": {"$text": {"$search": "a"}}}`, `{"code": 27}`},
		{`{"aggregate": "y", "pipeline": [], "cursor": null}`, `{"code": 14}`},
		{`{"listCollections": 1, "filter": 5}`, `{"code": 2}`},
		{`{"listCollections": 1, "filter": null}`, `{"code": 2}`},
		{`{"listCollections": 1, "nosuch": 1}`, `{"ok": 1.0}`},
		{`{"listIndexes": "y", "nosuch": 1}`, `{"ok": 1.0}`},
		{`{"dropIndexes": "y", "index": "*", "nosuch": 1}`, `{"ok": 1.0}`},
		{`{"findAndModify": "y", "query": {"_id": 1}, "update": {"a": 1}, "upsert": "yes", "new": "yes"}`, `{"value": {"_id": 1, "a": 1}}`},
		{`{"findAndModify": "y", "query": {"_id": 1}, "remove": "yes", "new": null}`, `{"value": {"_id": 1, "a": 1}}`},
	})
	ask(t, startVersion(t, "5.0").db, []answer{
		{`{"create": "y"}`, `{"ok": 1.0}`},
		{`{"listCollections": 1, "filter": 5}`, `{"code": 14}`},
		{`{"listCollections": 1, "nosuch": 1}`, `{"code": 40415}`},
		{`{"listIndexes": "y", "nosuch": 1}`, `{"code": 40415}`},
		{`{"dropIndexes": "y", "index": "*", "nosuch": 1}`, `{"code": 40415}`},
		{`{"findAndModify": "y", "query": {"_id": 1}, "update": {"a": 1}, "upsert": "yes"}`, `{"code": 14}`},
	})
	ask(t, startVersion(t, "4.4").client.Database("admin"), []answer{
		{`{"listDatabases": 1, "nosuch": 1}`, `{"code": 40415}`},
		{`{"create": "x", "recordPreImages": true}`, `{"code": 72}`},
	})
	ask(t, startVersion(t, "4.4").client.Database("admin"), []answer{
		{`{"create": "x", "validator": {"a": 1}}`, `{"code": 72}`},
		{`{"dropDatabase": 1}`, `{"code": 20}`},
	})
}

// view_graph.cpp, jstests/core/views/views_validation.js and views_aggregation.js.
func TestView_StandsOnNoCircleAndNotTooHigh(t *testing.T) {
	t.Parallel()
	s := startVersion(t, "4.4")
	ask(t, s.db, []answer{
		{`{"create": "a", "viewOn": "b", "pipeline": [{"$lookup": {"from": "a", "localField": "x", "foreignField": "y", "as": "z"}}]}`, `{"code": 5}`},
		{`{"create": "a", "viewOn": "b", "pipeline": [{"$unionWith": {"coll": "c", "pipeline": [{"$unionWith": "a"}]}}]}`, `{"code": 5}`},
		{`{"create": "a", "viewOn": "b", "pipeline": [{"$facet": {"f": [{"$lookup": {"from": "b", "as": "z", "pipeline": []}}]}}]}`, `{"ok": 1.0}`},
		{`{"create": "b", "viewOn": "c", "pipeline": [{"$graphLookup": {"from": "a", "startWith": 1, "connectFromField": "x", "connectToField": "y", "as": "z"}}]}`, `{"code": 5}`},
		{`{"create": "b", "viewOn": "c"}`, `{"ok": 1.0}`},
		{`{"collMod": "b", "viewOn": "a", "pipeline": []}`, `{"code": 5}`},
		{`{"insert": "c", "documents": [{"_id": 1}]}`, `{"n": 1}`},
		{`{"aggregate": "c", "pipeline": [{"$out": "b"}], "cursor": {}}`, `{"code": 166}`},
	})
	for i := range 20 {
		one := string(rune('a' + i))
		next := string(rune('a' + i + 1))
		ask(t, s.db, []answer{{
			`{"create": "v` + one + `", "viewOn": "v` + next + `", "pipeline": [{"$unionWith": "v` + next + `"}, {"$lookup": {"from": "v` + next + `", "as": "z", "pipeline": []}}]}`,
			`{"ok": 1.0}`,
		}})
	}
	ask(t, s.db, []answer{
		{`{"create": "top", "viewOn": "c", "pipeline": [{"$unionWith": "va"}]}`, `{"code": 165}`},
		{`{"create": "vu", "viewOn": "c"}`, `{"code": 165}`},
		{`{"create": "side", "viewOn": "vj"}`, `{"ok": 1.0}`},
	})
}

// index_key_validate.cpp, index_catalog_impl.cpp, create_indexes.cpp, drop_indexes.cpp.
func TestCreateIndexes_RefusesSpecificationsAsTheServerDoes(t *testing.T) {
	t.Parallel()
	many := `{"key": {"m": 1}, "name": "m"}`
	for i := range 70 {
		name := "m" + string(rune('A'+i%26)) + string(rune('a'+i/26))
		many += `, {"key": {"` + name + `": 1}, "name": "` + name + `"}`
	}
	ask(t, startVersion(t, "4.4").db, []answer{
		{`{"create": "c"}`, `{"ok": 1.0}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"a..b": 1}, "name": "x"}]}`, `{"code": 67}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"$**": -1}, "name": "x"}]}`, `{"code": 67}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"$**": 1}, "name": "x", "v": 1}]}`, `{"code": 67}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "x", "collation": {}}]}`, `{"code": 2}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "x", "storageEngine": 5}]}`, `{"code": 67}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "x", "partialFilterExpression": {"$nosuch": 1}}]}`, `{"code": 2}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "x", "partialFilterExpression": {"a": {"$nosuch": 1}}}]}`, `{"code": 2}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "x", "partialFilterExpression": {"a": {"$ne": 1}}}]}`, `{"code": 67}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "x", "partialFilterExpression": {"a": {"$regularExpression": {"pattern": "a", "options": ""}}}}]}`, `{"code": 67}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "x", "expireAfterSeconds": 2000000000}]}`, `{"code": 67}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"_id": 1}, "name": "x", "collation": {"locale": "fr"}}]}`, `{"code": 67}`},
		{`{"createIndexes": "c", "indexes": [` + many + `]}`, `{"code": 67}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "x"}], "nosuch": 1}`, `{"code": 2}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "x", "nosuch": 1}], "ignoreUnknownIndexOptions": "x"}`, `{"code": 14}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "x", "nosuch": 1, "dropDups": true}], "ignoreUnknownIndexOptions": true}`, `{"numIndexesAfter": 2}`},
		{`{"listIndexes": "c"}`, `{"cursor.firstBatch": [{"v": 2, "key": {"_id": 1}, "name": "_id_"}, {"v": 2, "key": {"a": 1}, "name": "x"}]}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "y", "collation": {"locale": "fr"}}]}`, `{"numIndexesAfter": 3}`},
		{`{"dropIndexes": "c", "index": {"a": 1}}`, `{"code": 181}`},
		{`{"dropIndexes": "c", "index": "y"}`, `{"nIndexesWas": 3}`},
		{`{"collMod": "c", "index": {"name": "x", "hidden": true}}`, `{"hidden_new": true}`},
		{`{"find": "c", "hint": "x"}`, `{"code": 2}`},
		{`{"createIndexes": "h", "indexes": [{"key": {"a.b": "hashed", "c": 1}, "name": "h"}]}`, `{"numIndexesAfter": 2}`},
		{`{"insert": "h", "documents": [{"a": {"b": 1}, "c": 1}]}`, `{"n": 1}`},
		{`{"insert": "h", "documents": [{"a": [{"b": 1}]}]}`, `{"writeErrors.0.code": 16766}`},
		{`{"update": "h", "updates": [{"q": {}, "u": {"$set": {"c": []}}}]}`, `{"writeErrors.0.code": 16766}`},
	})
	ask(t, startVersion(t, "5.0").db, []answer{
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "x"}], "nosuch": 1}`, `{"code": 40415}`},
	})
}

// read_preference.cpp.
func TestReadPreference_IsCheckedWithEveryCommand(t *testing.T) {
	t.Parallel()
	wire := newRawClient(t, startVersion(t, "4.4").server.Addr().String())
	for preference, code := range map[string]int32{
		`{"mode": "nosuch"}`: 2,
		`5`:                  14,
		`{}`:                 4,
		`{"mode": "secondary", "maxStalenessSeconds": -5}`:  2,
		`{"mode": "secondary", "maxStalenessSeconds": 5}`:   160,
		`{"mode": "secondary", "maxStalenessSeconds": 120}`: 0,
		`{"mode": "primary", "maxStalenessSeconds": 120}`:   2,
		`{"mode": "primary", "hedge": {}}`:                  72,
		`{"mode": "nearest", "hedge": {"enabled": true}}`:   0,
		`{"mode": "primary", "tags": [{"a": "b"}]}`:         2,
		`{"mode": "primary", "tags": [{}]}`:                 0,
	} {
		if got := refusedWith(t, wire, `{"ping": 1, "$db": "test", "$readPreference": `+preference+`}`); got != code {
			t.Errorf("%s: got code %d, want %d", preference, got, code)
		}
	}
}

// plan_executor_impl.cpp, requires_collection_stage.cpp, jstests/core/getmore_invalidated_cursors.js.
func TestCursor_OfADroppedCollectionSaysSo(t *testing.T) {
	t.Parallel()
	for _, gone := range []string{`{"drop": "c"}`, `{"dropDatabase": 1}`} {
		s := startVersion(t, "4.4")
		ask(t, s.db, []answer{{`{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]}`, `{"n": 3}`}})
		wire := newRawClient(t, s.server.Addr().String())
		opened := sent(t, wire, `{"find": "c", "batchSize": 1, "$db": "test"}`)
		id := opened.Lookup("cursor", "id").Int64()
		ask(t, s.db, []answer{{gone, `{"ok": 1.0}`}})
		more := fmt.Sprintf(`{"getMore": {"$numberLong": "%d"}, "collection": "c", "$db": "test"}`, id)
		for _, want := range []int32{175, 43} {
			if got := refusedWith(t, wire, more); got != want {
				t.Errorf("%s: got code %d, want %d", gone, got, want)
			}
		}
	}
}

// sent sends a command as it is, and gives the reply.
func sent(t *testing.T, client *rawClient, json string) bson.Raw {
	t.Helper()
	var command bson.D
	must(t, bson.UnmarshalExtJSON([]byte(json), false, &command))
	body, err := bson.Marshal(command)
	must(t, err)
	reply, err := client.roundTrip(message{body: body}, stepLimit)
	must(t, err)
	return reply
}

func refusedWith(t *testing.T, client *rawClient, json string) int32 {
	t.Helper()
	code, _ := sent(t, client, json).Lookup("code").Int32OK()
	return code
}

// update_object_node.cpp and the modifiers beside it, jstests/core/collation_update.js, doc_validation.js,
// rename4.js, update_dbref.js, upsert_fields.js.
func TestUpdate_FollowsTheServersSmallPrint(t *testing.T) {
	t.Parallel()
	ask(t, startVersion(t, "4.4").db, []answer{
		{`{"create": "c", "collation": {"locale": "en", "numericOrdering": true, "strength": 2}}`, `{"ok": 1.0}`},
		{`{"insert": "c", "documents": [{"_id": 1, "a": "124", "l": ["b", "10"], "p": ["x", "Y", "z"], "s": 4}], "ordered": null}`, `{"n": 1}`},
		{`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$min": {"a": "1234"}}, "multi": null}]}`, `{"nModified": 0}`},
		{`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$max": {"a": "1234"}, "$addToSet": {"l": {"$each": ["B", "c"]}}, "$pullAll": {"p": ["y"]}}}]}`, `{"nModified": 1}`},
		{`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$push": {"l": {"$each": ["9"], "$sort": 1}}}}]}`, `{"nModified": 1}`},
		{`{"find": "c"}`, `{"cursor.firstBatch": [{"_id": 1, "a": "1234", "l": ["9", "10", "b", "c"], "p": ["x", "z"], "s": 4}]}`},
		{`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$rename": {"s.g": "q"}}}]}`, `{"writeErrors.0.code": 28}`},
		{`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"$id": 1}}}]}`, `{"writeErrors.0.code": 55}`},
		{`{"update": "c", "updates": [{"q": {"_id": 1}, "u": 5}]}`, `{"code": 9}`},
		{`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {}, "hint": 5}]}`, `{"code": 9}`},
		{`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"s": 1}}, "c": {"x": 1}}]}`, `{"writeErrors.0.code": 51198}`},
		{`{"update": "c", "updates": [{"q": {"_id": {"$all": [1, 2]}}, "u": {"x": 1}, "upsert": true}]}`, `{"writeErrors.0.code": 54}`},
		{`{"update": "c", "updates": [{"q": {"_id": 7, "_id.x": 1}, "u": {"x": 1}, "upsert": true}]}`, `{"writeErrors.0.code": 54}`},
		{`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"l.$[x]": 1}}, "arrayFilters": [{"$nosuch": 1}]}]}`, `{"writeErrors.0.code": 2}`},
		{`{"collMod": "c", "validator": {"a": "ABC"}}`, `{"ok": 1.0}`},
		{`{"insert": "c", "documents": [{"_id": 2, "a": "abc"}, {"_id": 3, "a": "x"}]}`, `{"n": 1, "writeErrors.0.code": 121}`},
		{`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"s": 5}}}]}`, `{"writeErrors.0.code": 121}`},
		{`{"collMod": "c", "validationLevel": "moderate"}`, `{"ok": 1.0}`},
		{`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"s": 5}}}, {"q": {"_id": 2}, "u": {"$set": {"a": "x"}}}]}`, `{"nModified": 1, "writeErrors.0.code": 121}`},
		{`{"findAndModify": "c", "query": null, "remove": true}`, `{"code": 31160}`},
		{`{"findAndModify": "c", "sort": 1, "remove": true}`, `{"code": 31174}`},
		{`{"findAndModify": "c", "fields": 1, "remove": true}`, `{"code": 31175}`},
		{`{"findAndModify": "c", "query": {"l": "b"}, "fields": {"l.$": 1}, "new": true, "update": {"$set": {"s": 6}}}`, `{"code": 2}`},
		{`{"mapReduce": "c", "map": "function() {}", "reduce": "function() {}", "out": {"inline": 1}, "writeConcern": {"w": 1}}`, `{"code": 72}`},
	})
}

// canonical_query.cpp, query_planner.cpp, expression_parser.cpp, projection_parser.cpp, getmore_request.cpp.
func TestFind_RefusesWhatDoesNotGoTogether(t *testing.T) {
	t.Parallel()
	ask(t, startVersion(t, "4.4").db, []answer{
		{`{"insert": "c", "documents": [{"_id": 1, "a": [4, 5, 6], "b": [1]}, {"_id": 2, "a": 2}]}`, `{"n": 2}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"x": 1, "y": 1}, "name": "xy"}]}`, `{"ok": 1.0}`},
		{`{"find": "c", "sort": {"$natural": 1, "a": 1}}`, `{"code": 2}`},
		{`{"find": "c", "sort": {"$natural": 1}, "hint": {"_id": 1}}`, `{"code": 2}`},
		{`{"find": "c", "sort": {"$natural": 1}, "hint": {"$natural": -1}}`, `{"code": 2}`},
		{`{"find": "c", "sort": {"a": {"$meta": "nosuch"}}}`, `{"code": 31138}`},
		{`{"find": "c", "min": {"_id": 3}, "max": {"_id": 1}, "hint": {"_id": 1}}`, `{"code": 51175}`},
		{`{"find": "c", "min": {"x": 1, "y": 1}, "max": {"x": 1}, "hint": "xy"}`, `{"code": 51176}`},
		{`{"find": "c", "filter": {"$alwaysTrue": 5}}`, `{"code": 9}`},
		{`{"find": "c", "filter": {"a": {"$all": [4, {"$elemMatch": {"x": 1}}]}}}`, `{"code": 2}`},
		{`{"find": "c", "filter": {"a": {"$options": "s", "$regex": {"$regularExpression": {"pattern": "a", "options": "i"}}}}}`, `{"code": 51074}`},
		{`{"find": "c", "filter": {"a": {"$regex": "a", "$options": "i\u0000"}}}`, `{"code": 2}`},
		{`{"find": "c", "filter": {"a": 6}, "projection": {"b.$": 1}}`, `{"code": 51247}`},
		{`{"find": "c", "filter": {"a": 4}, "projection": {"a.$": 1, "b": {"$elemMatch": {"x": 1}}}}`, `{"code": 31255}`},
		{`{"find": "c", "filter": {"a": 4}, "projection": {"b": {"$elemMatch": {"x": 1}}, "a.$": 1}}`, `{"code": 31256}`},
		{`{"find": "c", "filter": {"a": 4}, "projection": {"a.$": {"$slice": 1}}}`, `{"code": 31271}`},
		{`{"find": "c", "projection": {"a": {"$meta": "nosuch"}}}`, `{"code": 17308}`},
		{`{"find": "nosuch", "batchSize": 0}`, `{"cursor.id": 0}`},
		{`{"getMore": {"$numberLong": "5"}, "collection": "c", "batchSize": 0}`, `{"code": 2}`},
		{`{"find": "c", "filter": {"a": {"$bitsAllSet": -1}}}`, `{"code": 9}`},
		{`{"find": "c", "filter": {"a": {"$bitsAllSet": "x"}}}`, `{"code": 2}`},
		{`{"distinct": "c", "key": ""}`, `{"values": []}`},
		{`{"distinct": "c"}`, `{"code": 40414}`},
		{`{"aggregate": "c", "pipeline": [{"$merge": {"into": "x", "on": ["_id", "_id"]}}], "cursor": {}}`, `{"code": 31465}`},
		{`{"aggregate": "c", "pipeline": [{"$merge": {"into": "x", "whenMatched": "fail", "whenNotMatched": "discard"}}], "cursor": {}}`, `{"code": 51181}`},
		{`{"aggregate": "c", "pipeline": [{"$merge": {"into": "x", "let": {"a": 1}}}], "cursor": {}}`, `{"code": 51199}`},
	})
}

// The shells of 4.4 number each statement of a transaction; 4.4 has it as an argument of every command.
func TestTransactions_TakeTheNumbersOfStatementsThatShellsSend(t *testing.T) {
	t.Parallel()
	converse(t, []inSession{
		{`{"insert": "c", "documents": [{"_id": 1}], "stmtId": 0, B1}`, 0},
		{`{"find": "c", "stmtId": 1, T1}`, 0},
		{`{"distinct": "c", "key": "_id", "stmtId": 2, T1}`, 0},
		{`{"aggregate": "c", "pipeline": [], "cursor": {}, "stmtId": 3, T1}`, 0},
		{`{"findAndModify": "c", "query": {}, "update": {"$set": {"a": 1}}, "stmtId": 4, T1}`, 0},
		{`{"commitTransaction": 1, "$db": "admin", "stmtId": 5, T1}`, 0},
		{`{"createIndexes": "c", "indexes": [{"key": {"_id": 1}, "name": "_id_"}], B3}`, 0},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "_id_"}], T3}`, 2},
		{`{"create": "d", B4}`, 0},
		{`{"createIndexes": "d", "indexes": [{"key": {"a": 1}, "name": "a"}], T4}`, 0},
		{`{"insert": "d", "documents": [{"a": 1}], T4}`, 0},
		{`{"createIndexes": "d", "indexes": [{"key": {"a": 1}, "name": "a"}], T4}`, 0},
		{`{"createIndexes": "d", "indexes": [{"key": {"b": 1}, "name": "b"}], T4}`, 263},
		{`{"create": "e", "readConcern": {"level": "snapshot"}, B5}`, 72},
		{`{"find": "c", "readConcern": {"level": "majority"}, B6}`, 0},
		{`{"createIndexes": "e", "indexes": [{"key": {"b": 1}, "name": "b"}], T6}`, 72},
		{`{"create": "e", "readConcern": {"level": "local"}, B7}`, 0},
		{`{"abortTransaction": 1, "$db": "admin", T7}`, 0},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]}`, 0},
		{`{"insert": "c", "documents": [{"_id": 9}], B8}`, 0},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]}`, 0},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": -1}, "name": "a"}]}`, 86},
		{`{"createIndexes": "c", "indexes": [{"key": {"b": 1}, "name": "b"}], "maxTimeMS": 100}`, 50},
		{`{"abortTransaction": 1, "$db": "admin", T8}`, 0},
		{`{"commitTransaction": 1, "$db": "admin", B8}`, 263},
		{`{"abortTransaction": 1, "$db": "admin", B8}`, 263},
		{`{"ping": 1, "lsid": {"id": {"$binary": {"base64": "EBESEw==", "subType": "04"}}}}`, 207},
	})
}

func TestUpkeep_TellsWhatThereIs(t *testing.T) {
	t.Parallel()
	h := startVersion(t, "4.4")
	ask(t, h.client.Database("admin"), []answer{
		{`{"getLog": "*"}`, `{"names": ["global", "startupWarnings"]}`},
		{`{"getLog": "nosuch"}`, `{"code": 96}`},
		{`{"listCommands": 1}`, `{"commands.find.adminOnly": false, "commands.listDatabases.adminOnly": true, "commands.insert.slaveOk": false}`},
		{`{"hostInfo": 1}`, `{"system.numaEnabled": false}`},
		{`{"getParameter": 1, "transactionLifetimeLimitSeconds": 1}`, `{"transactionLifetimeLimitSeconds": 60}`},
		{`{"killAllSessionsByPattern": []}`, `{"ok": 1.0}`},
		{`{"listDatabases": 1, "filter": {"name": "nosuch"}}`, `{"databases": [], "totalSize": 0.0}`},
		{`{"dbStats": 1, "scale": null}`, `{"scaleFactor": 1.0}`},
	})
}

// A pattern that goes back and back takes its time for each document, of which there are few.
func TestMaxTime_IsLookedAtBetweenSlowDocuments(t *testing.T) {
	t.Parallel()
	const slow = `{"s": {"$regex": "(x+x+)+y\\1"}}`
	s := `"` + strings.Repeat("x", 40) + `"`
	ask(t, startVersion(t, "4.4").db, []answer{
		{`{"insert": "c", "documents": [{"s": ` + s + `}, {"s": ` + s + `}, {"s": ` + s + `}, {"s": ` + s + `}]}`, `{"n": 4}`},
		{`{"find": "c", "filter": ` + slow + `, "maxTimeMS": 100}`, `{"code": 50}`},
		{`{"count": "c", "query": ` + slow + `, "maxTimeMS": 100}`, `{"code": 50}`},
		{`{"aggregate": "c", "pipeline": [{"$match": ` + slow + `}], "cursor": {}, "maxTimeMS": 100}`, `{"code": 50}`},
		{`{"update": "c", "updates": [{"q": ` + slow + `, "u": {"$set": {"a": 1}}, "multi": true}], "maxTimeMS": 100}`, `{"code": 50}`},
		{`{"delete": "c", "deletes": [{"q": ` + slow + `, "limit": 0}], "maxTimeMS": 100}`, `{"code": 50}`},
	})
}

// expression.cpp (optimize), pipeline.cpp (optimizePipeline), canonical_query.cpp: what is computed of constants fails
// without a document, and where it would never be reached.
func TestExpressions_ComputeConstantsBeforeThereIsADocument(t *testing.T) {
	t.Parallel()
	ask(t, startVersion(t, "4.4").db, []answer{
		{`{"create": "c"}`, `{"ok": 1.0}`},
		{`{"create": "v", "viewOn": "c", "pipeline": []}`, `{"ok": 1.0}`},
		{`{"aggregate": "c", "cursor": {}, "pipeline": [{"$project": {"x": {"$cond": [true, 1, {"$divide": [1, 0]}]}}}]}`, `{"code": 16608}`},
		{`{"aggregate": "none", "cursor": {}, "pipeline": [{"$group": {"_id": {"$add": ["a", 1]}}}]}`, `{"code": 16554}`},
		{`{"aggregate": "v", "cursor": {}, "pipeline": [{"$match": {"$expr": {"$toInt": "x"}}}]}`, `{"code": 241}`},
		{`{"aggregate": "c", "cursor": {}, "pipeline": [{"$changeStream": {}}, {"$match": {"$expr": {"$divide": [1, 0]}}}]}`, `{"code": 16608}`},
		{`{"aggregate": "c", "cursor": {}, "pipeline": [{"$project": {"x": {"$zip": {"inputs": [1]}}}}]}`, `{"ok": 1.0}`},
		{`{"find": "c", "filter": {"$expr": {"$divide": [1, 0]}}}`, `{"code": 16608}`},
		{`{"find": "v", "filter": {"$expr": {"$divide": [1, 0]}}}`, `{"code": 16608}`},
		{`{"find": "c", "projection": {"x": {"$divide": [1, 0]}}}`, `{"ok": 1.0}`},
		{`{"count": "c", "query": {"$expr": {"$divide": [1, 0]}}}`, `{"code": 16608}`},
		{`{"distinct": "c", "key": "a", "query": {"$expr": {"$divide": [1, 0]}}}`, `{"code": 16608}`},
		{`{"findAndModify": "c", "remove": true, "query": {"$expr": {"$divide": [1, 0]}}}`, `{"code": 16608}`},
		{`{"delete": "c", "deletes": [{"q": {"$expr": {"$divide": [1, 0]}}, "limit": 0}]}`, `{"ok": 1.0, "writeErrors.0.code": 16608}`},
		{`{"update": "c", "updates": [{"q": {"$expr": {"$divide": [1, 0]}}, "u": {"$set": {"a": 1}}}]}`, `{"ok": 1.0, "writeErrors.0.code": 16608}`},
	})
}
