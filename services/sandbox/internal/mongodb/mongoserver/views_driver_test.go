package mongoserver_test

import "testing"

// write_ops_exec.cpp, handleError: only what concerns the server ends the command.
func TestAView_IsWrittenToByNoStatement(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"4.4", "8.0"} {
		ask(t, startVersion(t, version).db, []answer{
			{`{"create": "v", "viewOn": "c", "pipeline": []}`, `{"ok": 1.0}`},
			{
				`{"insert": "v", "documents": [{"_id": 1}, {"_id": 2}]}`,
				`{"ok": 1.0, "n": 0, "writeErrors.0.index": 0, "writeErrors.0.code": 166, "writeErrors.1": null}`,
			},
			{
				`{"insert": "v", "documents": [{"_id": 1}, {"_id": [2]}, {"_id": 3}], "ordered": false}`,
				`{"ok": 1.0, "n": 0, "writeErrors.0.code": 166, "writeErrors.1.index": 1, "writeErrors.1.code": 2, "writeErrors.2.index": 2, "writeErrors.2.code": 166}`,
			},
			{
				`{"update": "v", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}, {"q": {"a": {"$nosuch": 1}}, "u": {"$set": {"a": 1}}}], "ordered": false}`,
				`{"ok": 1.0, "n": 0, "nModified": 0, "writeErrors.0.code": 166, "writeErrors.1.index": 1, "writeErrors.1.code": 2}`,
			},
			{
				`{"update": "v", "updates": [{"q": {}, "u": {"$set": {"a": 1}}, "upsert": true}]}`,
				`{"ok": 1.0, "n": 0, "nModified": 0, "upserted": null, "writeErrors.0.code": 166}`,
			},
			{`{"delete": "v", "deletes": [{"q": {}, "limit": 0}]}`, `{"ok": 1.0, "n": 0, "writeErrors.0.code": 166}`},
			{`{"findAndModify": "v", "query": {}, "remove": true}`, `{"ok": 0.0, "code": 166}`},
		})
	}
}

func TestAView_EndsTheTransactionThatWritesToIt(t *testing.T) {
	t.Parallel()
	replies := converse(t, []inSession{
		{`{"create": "c"}`, 0},
		{`{"create": "v", "viewOn": "c", "pipeline": []}`, 0},
		{`{"insert": "c", "documents": [{"_id": 1}], B1}`, 0},
		{`{"insert": "v", "documents": [{"_id": 2}], T1}`, 166},
		{`{"commitTransaction": 1, "$db": "admin", T1}`, 251},
		{`{"count": "c"}`, 0},
	})
	if ok := replies[3].Lookup("ok").Double(); ok != 1 {
		t.Errorf("got ok %v, want the error to be that of the statement", ok)
	}
	if n := replies[5].Lookup("n").Int32(); n != 0 {
		t.Errorf("got %d documents, want none", n)
	}
}

// run_aggregate.cpp, resolveInvolvedNamespaces and collatorCompatibleWithPipeline.
func TestAView_IsReadByTheStagesThatReadOtherCollections(t *testing.T) {
	t.Parallel()
	ask(t, startVersion(t, "4.4").db, []answer{
		{`{"insert": "c", "documents": [{"_id": 1, "k": "a", "up": null}, {"_id": 2, "k": "b", "up": 1}, {"_id": 3, "k": "b", "up": 2}]}`, `{"n": 3}`},
		{`{"insert": "one", "documents": [{"_id": "b"}]}`, `{"n": 1}`},
		{`{"create": "all", "viewOn": "c", "pipeline": []}`, `{"ok": 1.0}`},
		{`{"create": "later", "viewOn": "all", "pipeline": [{"$match": {"_id": {"$gt": 1}}}, {"$addFields": {"key": "$k"}}]}`, `{"ok": 1.0}`},
		{`{"create": "joined", "viewOn": "one", "pipeline": [{"$lookup": {"from": "later", "localField": "_id", "foreignField": "key", "as": "of"}}]}`, `{"ok": 1.0}`},
		{
			`{"aggregate": "one", "pipeline": [{"$lookup": {"from": "all", "localField": "_id", "foreignField": "k", "as": "of"}}, {"$project": {"of": "$of._id"}}], "cursor": {}}`,
			`{"cursor.firstBatch": [{"_id": "b", "of": [2, 3]}]}`,
		},
		{
			`{"aggregate": "one", "pipeline": [{"$lookup": {"from": "later", "localField": "_id", "foreignField": "key", "as": "of"}}, {"$project": {"of": "$of._id"}}], "cursor": {}}`,
			`{"cursor.firstBatch": [{"_id": "b", "of": [2, 3]}]}`,
		},
		{
			`{"aggregate": "one", "pipeline": [{"$lookup": {"from": "later", "let": {"k": "$_id"}, "pipeline": [{"$match": {"_id": 3, "$expr": {"$eq": ["$key", "$$k"]}}}], "as": "of"}}], "cursor": {}}`,
			`{"cursor.firstBatch": [{"_id": "b", "of": [{"_id": 3, "k": "b", "up": 2, "key": "b"}]}]}`,
		},
		{
			`{"aggregate": "c", "pipeline": [{"$match": {"_id": 3}}, {"$graphLookup": {"from": "later", "startWith": "$up", "connectFromField": "up", "connectToField": "_id", "as": "of"}}, {"$project": {"of": "$of._id"}}], "cursor": {}}`,
			`{"cursor.firstBatch": [{"_id": 3, "of": [2]}]}`,
		},
		{
			`{"aggregate": "one", "pipeline": [{"$unionWith": {"coll": "joined", "pipeline": [{"$project": {"of": "$of._id"}}]}}], "cursor": {}}`,
			`{"cursor.firstBatch": [{"_id": "b"}, {"_id": "b", "of": [2, 3]}]}`,
		},
		{`{"create": "collated", "viewOn": "c", "pipeline": [], "collation": {"locale": "fr"}}`, `{"ok": 1.0}`},
		{`{"aggregate": "one", "pipeline": [{"$unionWith": "collated"}], "cursor": {}}`, `{"code": 167}`},
	})
}

func TestAView_IsDescribedInACollection(t *testing.T) {
	t.Parallel()
	h := startVersion(t, "4.4")
	ask(t, h.db, []answer{
		{`{"find": "system.views"}`, `{"cursor.firstBatch": []}`},
		{`{"create": "c"}`, `{"ok": 1.0}`},
		{`{"create": "v", "viewOn": "c", "pipeline": [{"$match": {"a": 1}}]}`, `{"ok": 1.0}`},
		{`{"create": "w", "viewOn": "v", "pipeline": []}`, `{"ok": 1.0}`},
		{
			`{"find": "system.views"}`,
			`{"cursor.firstBatch": [{"_id": "test.v", "viewOn": "c", "pipeline": [{"$match": {"a": 1}}]}, {"_id": "test.w", "viewOn": "v", "pipeline": []}]}`,
		},
		{`{"find": "system.views", "filter": {"viewOn": "v"}, "projection": {"viewOn": 1}}`, `{"cursor.firstBatch": [{"_id": "test.w", "viewOn": "v"}]}`},
		{`{"find": "system.views", "sort": {"_id": -1}, "limit": 1, "projection": {"_id": 1}}`, `{"cursor.firstBatch": [{"_id": "test.w"}]}`},
	})
	ask(t, h.client.Database("other"), []answer{{`{"find": "system.views"}`, `{"cursor.firstBatch": []}`}})
}

// distinct.cpp. What is left open here, the check for goroutines at the end tells.
func TestAView_WhoseDistinctFailsIsClosed(t *testing.T) {
	t.Parallel()
	ask(t, startVersion(t, "4.4").db, []answer{
		{`{"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": "x"}, {"_id": 3, "a": 1}]}`, `{"n": 3}`},
		{`{"create": "v", "viewOn": "c", "pipeline": [{"$project": {"b": {"$add": ["$a", 1]}}}]}`, `{"ok": 1.0}`},
		{`{"distinct": "v", "key": "b"}`, `{"code": 16554}`},
		{`{"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}]}`, `{"n": 1}`},
		{`{"distinct": "v", "key": "b"}`, `{"values": [2]}`},
	})
}
