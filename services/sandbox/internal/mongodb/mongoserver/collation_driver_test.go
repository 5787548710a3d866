package mongoserver_test

import "testing"

// https://www.mongodb.com/docs/v4.4/reference/collation/ and jstests/aggregation/ of the server: sources of
// $graphLookup and $lookup, $group, $bucket and $bucketAuto under a collation.
func TestCollation_IsThatOfEveryStageOfAPipeline(t *testing.T) {
	t.Parallel()
	aggregate := func(stages string) string {
		return `{"aggregate": "c", "pipeline": [` + stages + `], "cursor": {}, "collation": {"locale": "en", "strength": 2}}`
	}
	ask(t, startVersion(t, "4.4").db, []answer{
		{`{"insert": "c", "documents": [{"_id": 1, "k": "a", "n": 1, "to": "B"}, {"_id": 2, "k": "A", "n": 2}, {"_id": 3, "k": "b", "n": 3, "to": "a"}]}`, `{"n": 3}`},
		{
			aggregate(`{"$group": {"_id": "$k", "n": {"$sum": "$n"}}}, {"$sort": {"_id": 1}}`),
			`{"cursor.firstBatch": [{"_id": "a", "n": 3}, {"_id": "b", "n": 3}]}`,
		},
		{aggregate(`{"$sortByCount": "$k"}`), `{"cursor.firstBatch": [{"_id": "a", "count": 2}, {"_id": "b", "count": 1}]}`},
		{
			aggregate(`{"$addFields": {"l": {"$concat": ["$k", "!"]}, "big": {"$gt": ["$n", 2]}}}, {"$match": {"l": "A!"}}, {"$project": {"l": 1, "big": 1}}`),
			`{"cursor.firstBatch": [{"_id": 1, "l": "a!", "big": false}, {"_id": 2, "l": "A!", "big": false}]}`,
		},
		{
			aggregate(`{"$lookup": {"from": "c", "localField": "to", "foreignField": "k", "as": "of"}}, {"$project": {"of": "$of._id"}}`),
			`{"cursor.firstBatch": [{"_id": 1, "of": [3]}, {"_id": 2, "of": []}, {"_id": 3, "of": [1, 2]}]}`,
		},
		{
			aggregate(`{"$match": {"_id": 2}}, {"$lookup": {"from": "c", "let": {"x": "$k"}, "pipeline": [{"$match": {"k": "A"}}, {"$project": {"x": "$$x"}}], "as": "of"}}`),
			`{"cursor.firstBatch.0.of": [{"_id": 1, "x": "A"}, {"_id": 2, "x": "A"}]}`,
		},
		{
			aggregate(`{"$match": {"_id": 3}}, {"$graphLookup": {"from": "c", "startWith": "$to", "connectFromField": "to", "connectToField": "k", "as": "of", "restrictSearchWithMatch": {"k": {"$in": ["A", "B"]}}}}, {"$project": {"of": {"$size": "$of"}}}`),
			`{"cursor.firstBatch": [{"_id": 3, "of": 3}]}`,
		},
		{
			aggregate(`{"$facet": {"f": [{"$match": {"k": "B"}}], "g": [{"$unwind": "$k"}, {"$group": {"_id": "$k"}}, {"$count": "n"}]}}`),
			`{"cursor.firstBatch": [{"f": [{"_id": 3, "k": "b", "n": 3, "to": "a"}], "g": [{"n": 2}]}]}`,
		},
		{
			aggregate(`{"$bucket": {"groupBy": "$k", "boundaries": ["A", "B", "c"]}}`),
			`{"cursor.firstBatch": [{"_id": "A", "count": 2}, {"_id": "B", "count": 1}]}`,
		},
		{aggregate(`{"$bucket": {"groupBy": "$k", "boundaries": ["a", "A"]}}`), `{"code": 40194}`},
		{
			aggregate(`{"$bucketAuto": {"groupBy": "$k", "buckets": 3}}`),
			`{"cursor.firstBatch": [{"_id": {"min": "a", "max": "b"}, "count": 2}, {"_id": {"min": "b", "max": "b"}, "count": 1}]}`,
		},
		{aggregate(`{"$match": {"_id": 1}}, {"$unionWith": {"coll": "c", "pipeline": [{"$match": {"k": "B"}}]}}, {"$project": {"k": 1}}`), `{"cursor.firstBatch": [{"_id": 1, "k": "a"}, {"_id": 3, "k": "b"}]}`},
		{aggregate(`{"$match": {"$expr": {"$gt": ["$n", 2]}, "k": "B"}}, {"$project": {"_id": 1}}`), `{"cursor.firstBatch": [{"_id": 3}]}`},

		{aggregate(`{"$match": {"$expr": {"$eq": ["$k", "A"]}}}`), `{"code": 238}`},
		{aggregate(`{"$project": {"x": {"$cond": [{"$eq": ["$k", "A"]}, 1, 0]}}}`), `{"code": 238}`},
		{aggregate(`{"$project": {"x": {"$eq": ["$k", {"$literal": 1}]}}}`), `{"code": 238}`},
		{aggregate(`{"$group": {"_id": null, "k": {"$addToSet": "$k"}}}`), `{"code": 238}`},
		{aggregate(`{"$facet": {"f": [{"$group": {"_id": null, "k": {"$max": "$k"}}}]}}`), `{"code": 238}`},
		{aggregate(`{"$lookup": {"from": "c", "let": {"x": {"$in": ["$k", ["A"]]}}, "pipeline": [], "as": "of"}}`), `{"code": 238}`},
		{aggregate(`{"$lookup": {"from": "c", "pipeline": [{"$addFields": {"x": {"$setUnion": ["$k", ["A"]]}}}], "as": "of"}}`), `{"code": 238}`},
		{aggregate(`{"$unionWith": {"coll": "c", "pipeline": [{"$redact": {"$cond": [{"$eq": ["$k", "$to"]}, "$$KEEP", "$$PRUNE"]}}]}}`), `{"code": 238}`},
	})
	ask(t, startVersion(t, "4.4").db, []answer{
		{`{"create": "c", "collation": {"locale": "en", "strength": 2}}`, `{"ok": 1.0}`},
		{`{"insert": "c", "documents": [{"_id": 1, "k": "a"}, {"_id": 2, "k": "A"}]}`, `{"n": 2}`},
		{`{"aggregate": "c", "pipeline": [{"$group": {"_id": "$k", "n": {"$sum": 1}}}], "cursor": {}}`, `{"cursor.firstBatch": [{"_id": "a", "n": 2}]}`},
	})
}
