package mongoserver_test

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"changerelay/services/sandbox/internal/mongodb/engine"
)

// explained gives the stages of a find's plan, the outermost first, and how many
// keys and documents it looked at.
func explained(t *testing.T, db *mongo.Database, find bson.D) (stages []string, keys, docs int32) {
	t.Helper()
	var reply bson.M
	must(t, db.RunCommand(t.Context(), bson.D{{Key: "explain", Value: find}, {Key: "verbosity", Value: "executionStats"}}).Decode(&reply))
	for plan := subdocument(reply, "queryPlanner", "winningPlan"); plan != nil; plan = subdocument(plan, "inputStage") {
		stages = append(stages, plan["stage"].(string))
	}
	stats := subdocument(reply, "executionStats")
	return stages, stats["totalKeysExamined"].(int32), stats["totalDocsExamined"].(int32)
}

func subdocument(doc bson.M, path ...string) bson.M {
	for _, name := range path {
		switch v := doc[name].(type) {
		case bson.M:
			doc = v
		case bson.D:
			doc = bson.M{}
			for _, e := range v {
				doc[e.Key] = e.Value
			}
		default:
			return nil
		}
	}
	return doc
}

func TestExplain_TellsThePlanThatIsRun(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("orders")
	var docs []any
	for i := range 100 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "a", Value: i % 10}, {Key: "b", Value: i}})
	}
	_, err := coll.InsertMany(t.Context(), docs)
	must(t, err)
	_, err = coll.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "a", Value: 1}, {Key: "b", Value: -1}}})
	must(t, err)
	find := func(more ...bson.E) bson.D { return append(bson.D{{Key: "find", Value: "orders"}}, more...) }
	filter := func(key string, v any) bson.E { return bson.E{Key: "filter", Value: bson.D{{Key: key, Value: v}}} }
	sort := func(key string) bson.E { return bson.E{Key: "sort", Value: bson.D{{Key: key, Value: 1}}} }
	for name, c := range map[string]struct {
		find       bson.D
		stages     []string
		keys, docs int32
	}{
		"by _id":               {find(filter("_id", 5)), []string{"IDHACK"}, 1, 1},
		"through an index":     {find(filter("a", 3)), []string{"FETCH", "IXSCAN"}, 10, 10},
		"in the index's order": {find(filter("a", 3), bson.E{Key: "sort", Value: bson.D{{Key: "b", Value: -1}}}), []string{"FETCH", "IXSCAN"}, 10, 10},
		"scan":                 {find(filter("b", 3)), []string{"COLLSCAN"}, 0, 100},
		"scan and sort":        {find(filter("b", 3), sort("c")), []string{"SORT", "COLLSCAN"}, 0, 100},
		"limit":                {find(bson.E{Key: "limit", Value: 7}), []string{"LIMIT", "COLLSCAN"}, 0, 7},
		"no collection":        {bson.D{{Key: "find", Value: "none"}}, []string{"EOF"}, 0, 0},
	} {
		stages, keys, examined := explained(t, h.db, c.find)
		if !slices.Equal(stages, c.stages) || keys != c.keys || examined != c.docs {
			t.Errorf("%s: got %v, %d keys, %d documents, want %v, %d, %d", name, stages, keys, examined, c.stages, c.keys, c.docs)
		}
	}
}

// An index that tells by its keys what is asked for is read without the documents.
func TestExplain_ReadsKeysOnly(t *testing.T) {
	t.Parallel()
	const (
		plan  = "queryPlanner.winningPlan"
		count = `"` + plan + `.stage": "COUNT", "` + plan + `.inputStage.stage": `
		keys  = `"executionStats.totalKeysExamined": `
		docs  = `"executionStats.totalDocsExamined": `
	)
	ask(t, startVersion(t, "4.4").db, []answer{
		{`{"insert": "c", "documents": [{"_id": 1, "a": 1, "b": 1}, {"_id": 2, "a": 1, "b": 2}, {"_id": 3, "a": 2, "b": 3}, {"_id": 4}, {"_id": 5, "a": null, "m": [1, 2]}, {"_id": 6, "m": [2, 3]}]}`, `{"n": 6}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1, "b": 1}, "name": "ab"}, {"key": {"m": 1}, "name": "m"}]}`, `{"ok": 1.0}`},
		{`{"explain": {"count": "c", "query": {"a": 1}}}`, `{` + count + `"COUNT_SCAN", "` + plan + `.inputStage.indexName": "ab", ` + keys + `3, ` + docs + `0, "executionStats.executionStages.nCounted": 2}`},
		{`{"explain": {"count": "c", "query": {"a": 1, "b": {"$gt": 1}}}}`, `{` + count + `"COUNT_SCAN", ` + keys + `2, ` + docs + `0}`},
		{`{"explain": {"count": "c", "query": {"a": 1}, "limit": 1}}`, `{` + count + `"COUNT_SCAN", ` + keys + `1, ` + docs + `0}`},
		{`{"explain": {"count": "c", "query": {"m": 2}}}`, `{` + count + `"COUNT_SCAN", ` + keys + `3, ` + docs + `0}`},
		{`{"explain": {"count": "c", "query": {"m": {"$gt": 1, "$lt": 3}}}}`, `{` + count + `"FETCH", "executionStats.executionStages.nCounted": 2}`},
		{`{"explain": {"count": "c", "query": {"a": null}}}`, `{` + count + `"FETCH", ` + docs + `3}`},
		{`{"explain": {"count": "c", "query": {"a": {"$in": [1, 2]}}}}`, `{` + count + `"FETCH", ` + docs + `3}`},
		{`{"count": "c", "query": {"a": {"$gte": 1}}}`, `{"n": 3}`},
		{`{"explain": {"distinct": "c", "key": "a"}}`, `{"` + plan + `.stage": "PROJECTION_COVERED", "` + plan + `.inputStage.stage": "DISTINCT_SCAN", "` + plan + `.inputStage.indexBounds": {"a": ["[MinKey, MaxKey]"], "b": ["[MinKey, MaxKey]"]}, ` + keys + `4, ` + docs + `0}`},
		{`{"distinct": "c", "key": "a"}`, `{"values": [null, 1, 2]}`},
		{`{"explain": {"distinct": "c", "key": "a", "query": {"a": {"$lt": 2}}}}`, `{"` + plan + `.inputStage.stage": "DISTINCT_SCAN", ` + keys + `1, ` + docs + `0}`},
		{`{"distinct": "c", "key": "a", "query": {"a": {"$lt": 2}}}`, `{"values": [1]}`},
		{`{"explain": {"distinct": "c", "key": "m"}}`, `{"` + plan + `.stage": "COLLSCAN"}`},
		{`{"explain": {"distinct": "c", "key": "b", "query": {"a": 1}}}`, `{"` + plan + `.stage": "FETCH", "` + plan + `.inputStage.stage": "IXSCAN"}`},
	})
}

// https://www.mongodb.com/docs/v4.4/reference/explain-results/
func TestExplain_CountsWhatIsNotReturned(t *testing.T) {
	t.Parallel()
	const stats, stages = "executionStats", "executionStats.executionStages"
	ask(t, startVersion(t, "4.4").db, []answer{
		{`{"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 1}, {"_id": 3, "a": 2}]}`, `{"n": 3}`},
		{
			`{"explain": {"count": "c", "query": {"a": 1}}, "verbosity": "executionStats"}`,
			`{"` + stats + `.nReturned": 0, "` + stages + `.stage": "COUNT", "` + stages + `.nReturned": 0, "` + stages + `.nCounted": 2}`,
		},
		{
			`{"explain": {"count": "c"}, "verbosity": "executionStats"}`,
			`{"queryPlanner.winningPlan": {"stage": "COUNT"}, "` + stats + `.totalDocsExamined": 0, "` + stages + `.nCounted": 3}`,
		},
		{
			`{"explain": {"count": "c", "hint": {"_id": 1}}, "verbosity": "executionStats"}`,
			`{"queryPlanner.winningPlan.inputStage.stage": "COUNT_SCAN", "` + stages + `.nCounted": 3, "` + stats + `.totalKeysExamined": 4, "` + stats + `.totalDocsExamined": 0}`,
		},
		{`{"explain": {"count": "none"}}`, `{"queryPlanner.winningPlan": {"stage": "COUNT", "inputStage": {"stage": "EOF"}}}`},
		{
			`{"explain": {"update": "c", "updates": [{"q": {"a": 1}, "u": {"$set": {"b": 1}}, "multi": true}]}, "verbosity": "executionStats"}`,
			`{"` + stats + `.nReturned": 0, "` + stages + `.stage": "UPDATE", "` + stages + `.nReturned": 0, "` + stages + `.nMatched": 2}`,
		},
		{
			`{"explain": {"delete": "c", "deletes": [{"q": {"a": 1}, "limit": 1}]}, "verbosity": "executionStats"}`,
			`{"` + stats + `.nReturned": 0, "` + stages + `.stage": "DELETE", "` + stages + `.nReturned": 0, "` + stages + `.nWouldDelete": 1}`,
		},
		{
			`{"explain": {"findAndModify": "c", "query": {"a": 1}, "remove": true}, "verbosity": "executionStats"}`,
			`{"` + stats + `.nReturned": 1, "` + stages + `.stage": "DELETE", "` + stages + `.nReturned": 1}`,
		},
		{
			`{"explain": {"find": "c", "filter": {"a": 1}}, "verbosity": "executionStats"}`,
			`{"` + stats + `.nReturned": 2, "` + stages + `.nReturned": 2, "` + stages + `.nCounted": null}`,
		},
	})
}

func TestExplain_RefusesAPipelineThatCannotBeRun(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	_, err := h.db.Collection("c").InsertOne(t.Context(), one("_id", 1))
	must(t, err)
	for _, collection := range []string{"c", "none"} {
		for stage, want := range map[string]string{
			`{"$match": "abc"}`:                  `{"code": 15959}`,
			`{"$nosuch": 1}`:                     `{"code": 40324}`,
			`{"$group": {}}`:                     `{"code": 15955}`,
			`{"$match": {"a": 1}}`:               `{"ok": 1.0}`,
			`{"$indexStats": {}}`:                `{"ok": 1.0}`,
			`{"$out": "other"}`:                  `{"ok": 1.0}`,
			`{"$merge": "other"}`:                `{"ok": 1.0}`,
			`{"$limit": 1}, {"$indexStats": {}}`: `{"code": 40602}`,
			`{"$changeStream": {}}`:              `{"ok": 1.0}`,

			`{"$changeStream": {}}, {"$match": "abc"}`: `{"code": 15959}`,
			`{"$changeStream": {}}, {"$group": {}}`:    `{"code": 20}`,
			`{"$changeStream": {"nosuch": 1}}`:         `{"code": 40415}`,
			`{"$changeStream": {}, "other": 1}`:        `{"code": 40323}`,
			`{"$out": "other", "more": 1}`:             `{"code": 40323}`,
			`{"$merge": "other", "more": 1}`:           `{"code": 40323}`,
			`{"$indexStats": {}, "more": 1}`:           `{"code": 40323}`,
		} {
			aggregate := `{"aggregate": "` + collection + `", "pipeline": [` + stage + `], "cursor": {}`
			ask(t, h.db, []answer{
				{`{"explain": ` + aggregate + `}}`, want},
				{aggregate + `, "explain": true}`, want},
			})
		}
	}
}

func TestExplain_WritesNothing(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("orders")
	_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
	must(t, err)
	must(t, h.db.RunCommand(t.Context(), bson.D{{Key: "explain", Value: bson.D{
		{Key: "delete", Value: "orders"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "limit", Value: 0}}}},
	}}}).Err())
	if n, err := coll.CountDocuments(t.Context(), bson.D{}); err != nil || n != 1 {
		t.Errorf("got %d documents and %v, want 1", n, err)
	}
}

func TestMajorityReads_SeeAWriteWhenItsJournalDoes(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	acknowledged := h.db.Collection("c", options.Collection().SetWriteConcern(writeconcern.Majority()))
	unawaited := h.db.Collection("c", options.Collection().SetWriteConcern(writeconcern.W1()))
	majority := h.db.Collection("c", options.Collection().SetReadConcern(readconcern.Majority()))
	insert := func(coll *mongo.Collection, id int) {
		_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}})
		must(t, err)
	}
	seen := func() int64 {
		n, err := majority.CountDocuments(t.Context(), bson.D{})
		must(t, err)
		return n
	}
	insert(acknowledged, 1)
	if n := seen(); n != 1 {
		t.Fatalf("got %d documents after a majority write, want 1", n)
	}
	insert(unawaited, 2)
	for seen() != 2 {
		must(t, t.Context().Err()) // until the journal's next turn
	}
	insert(unawaited, 3)
	insert(acknowledged, 4)
	if n := seen(); n != 4 {
		t.Errorf("got %d documents after another majority write, want 4", n)
	}
}

func TestCollMod_HidesAnIndex(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	coll := h.db.Collection("c")
	_, err := coll.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "a", Value: 1}}})
	must(t, err)
	_, err = coll.InsertOne(t.Context(), bson.D{{Key: "a", Value: 1}})
	must(t, err)
	var reply bson.M
	hide := bson.D{{Key: "collMod", Value: "c"}, {Key: "index", Value: bson.D{{Key: "name", Value: "a_1"}, {Key: "hidden", Value: true}}}}
	must(t, h.db.RunCommand(t.Context(), hide).Decode(&reply))
	if reply["hidden_old"] != false || reply["hidden_new"] != true {
		t.Errorf("got %v, want it hidden", reply)
	}
	find := bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "a", Value: 1}}}}
	if stages, _, _ := explained(t, h.db, find); stages[0] != "COLLSCAN" {
		t.Errorf("got %v, want the hidden index left alone", stages)
	}
}

// The texts are those of the server (src/mongo/db/query/index_bounds.cpp,
// jstests/core/explain*.js).
func TestExplain_ShowsTheBoundsOfAnIndex(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	ask(t, h.db, []answer{
		{`{"insert": "c", "documents": [{"_id": 1, "a": 1, "b": "x"}]}`, `{"n": 1}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1, "b": -1}, "name": "ab"}]}`, `{"ok": 1.0}`},
	})
	const all, down = `["[MinKey, MaxKey]"]`, `["[MaxKey, MinKey]"]`
	for filter, want := range map[string]string{
		`{"a": 5}`:                         `{"a": ["[5, 5]"], "b": ` + down + `}`,
		`{"a": 5.0}`:                       `{"a": ["[5.0, 5.0]"], "b": ` + down + `}`,
		`{"a": {"$gt": 1}}`:                `{"a": ["(1, inf.0]"], "b": ` + down + `}`,
		`{"a": {"$lte": 1}}`:               `{"a": ["[-inf.0, 1]"], "b": ` + down + `}`,
		`{"a": {"$gte": 1, "$lt": 3}}`:     `{"a": ["[1, 3)"], "b": ` + down + `}`,
		`{"a": {"$in": [3, 1]}}`:           `{"a": ["[1, 1]", "[3, 3]"], "b": ` + down + `}`,
		`{"a": 1, "b": {"$gt": "x"}}`:      `{"a": ["[1, 1]"], "b": ["({}, \"x\")"]}`,
		`{"a": 1, "b": "x"}`:               `{"a": ["[1, 1]"], "b": ["[\"x\", \"x\"]"]}`,
		`{"a": 1, "b": {"$regex": "^ab"}}`: `{"a": ["[1, 1]"], "b": ["[/.*/, /.*/]", "(\"ac\", \"ab\"]"]}`,
		`{"a": null}`:                      `{"a": ["[null, null]"], "b": ` + down + `}`,
		`{"a": {"$gte": {"$date": "1970-01-01T00:00:01Z"}}}`: `{"a": ["[new Date(1000), new Date(9223372036854775807)]"], "b": ` + down + `}`,
	} {
		ask(t, h.db, []answer{{`{"explain": {"find": "c", "filter": ` + filter + `}}`, `{"queryPlanner.winningPlan.inputStage.indexBounds": ` + want + `}`}})
	}
	ask(t, h.db, []answer{
		{`{"explain": {"find": "c", "sort": {"a": -1, "b": 1}}}`, `{"queryPlanner.winningPlan.inputStage.indexBounds": {"a": ` + down + `, "b": ` + all + `}}`},
		{`{"explain": {"find": "c", "hint": "ab"}}`, `{"queryPlanner.winningPlan.inputStage.indexBounds": {"a": ` + all + `, "b": ` + down + `}}`},
		{
			`{"explain": {"find": "c", "hint": "ab", "min": {"a": 1, "b": 2}}}`,
			`{"queryPlanner.winningPlan.inputStage.stage": "IXSCAN", "queryPlanner.winningPlan.inputStage.indexBounds": null}`,
		},
	})
}

// NaN is before all numbers in an index and less than none of them.
func TestIndexes_HaveNoNaNAmongLesserNumbers(t *testing.T) {
	t.Parallel()
	for _, direction := range []string{"1", "-1"} {
		ask(t, start(t, engine.Config{}).db, []answer{
			{`{"createIndexes": "c", "indexes": [{"key": {"a": ` + direction + `}, "name": "a"}]}`, `{"ok": 1.0}`},
			{
				`{"insert": "c", "documents": [{"_id": 1, "a": {"$numberDouble": "NaN"}}, {"_id": 2, "a": {"$numberDouble": "-Infinity"}}, ` +
					`{"_id": 3, "a": 4}, {"_id": 4, "a": 5}]}`, `{"n": 4}`,
			},
			{`{"count": "c", "query": {"a": {"$lt": 5}}}`, `{"n": 2}`},
			{`{"count": "c", "query": {"a": {"$lte": 5}}}`, `{"n": 3}`},
			{`{"count": "c", "query": {"a": {"$lt": {"$numberDouble": "-Infinity"}}}}`, `{"n": 0}`},
			{`{"count": "c", "query": {"a": {"$lte": {"$numberDouble": "NaN"}}}}`, `{"n": 1}`},
			{`{"count": "c", "query": {"a": {"$gt": {"$numberDouble": "NaN"}}}}`, `{"n": 0}`},
			{`{"distinct": "c", "key": "a", "query": {"a": {"$lt": 5}}}`, `{"values.0": {"$numberDouble": "-Infinity"}, "values.1": 4, "values.2": null}`},
			{`{"find": "c", "filter": {"a": {"$lt": 5}}, "sort": {"_id": 1}}`, `{"cursor.firstBatch.0._id": 2, "cursor.firstBatch.1._id": 3, "cursor.firstBatch.2": null}`},
		})
	}
}
