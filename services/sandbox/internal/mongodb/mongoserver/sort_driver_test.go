package mongoserver_test

import (
	"testing"

	"changerelay/services/sandbox/internal/mongodb/engine"
)

// sort_key_generator.cpp: a document counts with the first of its compound keys.
func TestSort_TakesTheKeyOfOneElementForFieldsOfOneArray(t *testing.T) {
	t.Parallel()
	ask(t, start(t, engine.Config{}).db, []answer{
		{`{"insert": "c", "documents": [{"_id": 1, "a": [{"x": 1, "y": 9}, {"x": 2, "y": 0}]}, {"_id": 2, "a": [{"x": 1, "y": 5}]}]}`, `{"n": 2}`},
		{`{"find": "c", "sort": {"a.x": 1, "a.y": 1}}`, `{"cursor.firstBatch.0._id": 2, "cursor.firstBatch.1._id": 1}`},
		{`{"find": "c", "sort": {"a.x": -1, "a.y": -1}}`, `{"cursor.firstBatch.0._id": 1, "cursor.firstBatch.1._id": 2}`},
		{
			`{"aggregate": "c", "pipeline": [{"$unwind": "$_id"}, {"$sort": {"a.x": 1, "a.y": 1}}], "cursor": {}}`,
			`{"cursor.firstBatch.0._id": 2, "cursor.firstBatch.1._id": 1}`,
		},
		{`{"findAndModify": "c", "sort": {"a.x": 1, "a.y": 1}, "update": {"$set": {"seen": true}}}`, `{"value._id": 2}`},
		{`{"findAndModify": "c", "sort": {"a.x": 1, "a.y": 1}, "remove": true}`, `{"value._id": 2}`},
	})
}

func TestSort_RefusesParallelArrays(t *testing.T) {
	t.Parallel()
	const refused = `{"code": 2, "errmsg": "cannot sort with keys that are parallel arrays"}`
	ask(t, start(t, engine.Config{}).db, []answer{
		{`{"insert": "c", "documents": [{"_id": 1, "a": [1], "b": [2]}, {"_id": 2, "a": 1, "b": [2]}]}`, `{"n": 2}`},
		{`{"find": "c", "sort": {"a": 1, "b": 1}}`, refused},
		{`{"find": "c", "filter": {"_id": 2}, "sort": {"a": 1, "b": 1}}`, `{"cursor.firstBatch.0._id": 2}`},
		{`{"aggregate": "c", "pipeline": [{"$sort": {"a": 1, "b": 1}}], "cursor": {}}`, refused},
		{`{"aggregate": "c", "pipeline": [{"$unwind": "$_id"}, {"$sort": {"a": 1, "b": 1}}], "cursor": {}}`, refused},
		{`{"findAndModify": "c", "sort": {"a": 1, "b": 1}, "update": {"$set": {"seen": true}}}`, refused},
		{`{"findAndModify": "c", "sort": {"a": 1, "b": 1}, "remove": true}`, refused},
	})
}
