package mongoserver_test

import (
	"testing"
)

// create_indexes.cpp, commit_quorum_options.cpp, ReplSetConfig.
func TestCreateIndexes_RepeatsTheCommitQuorumThatTheSetCanMake(t *testing.T) {
	t.Parallel()
	ask(t, startVersion(t, "4.4").db, []answer{
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}], "commitQuorum": 7}`, `{"commitQuorum": 7, "numIndexesAfter": 2}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"b": 1}, "name": "b"}], "commitQuorum": 1.0}`, `{"commitQuorum": 1, "numIndexesAfter": 3}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"d": 1}, "name": "d"}], "commitQuorum": "majority"}`, `{"commitQuorum": "majority"}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"e": 1}, "name": "e"}], "commitQuorum": "votingMembers"}`, `{"commitQuorum": "votingMembers"}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"f": 1}, "name": "f"}]}`, `{"commitQuorum": "votingMembers", "numIndexesAfter": 6}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"g": 1}, "name": "g"}], "commitQuorum": true}`, `{"code": 9}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"g": 1}, "name": "g"}], "commitQuorum": ""}`, `{"code": 9}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"g": 1}, "name": "g"}], "commitQuorum": -1}`, `{"code": 9}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"g": 1}, "name": "g"}], "commitQuorum": 51}`, `{"code": 9}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"g": 1}, "name": "g"}], "commitQuorum": 2}`, `{"code": 278, "codeName": "UnsatisfiableCommitQuorum"}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"g": 1}, "name": "g"}], "commitQuorum": "nosuch"}`, `{"code": 79}`},
		{`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}], "commitQuorum": 2}`, `{"note": "all indexes already exist", "commitQuorum": null, "numIndexesAfter": 6}`},
	})
}

// coll_mod.cpp at the time of 4.4: what later versions refuse. SERVER-48047 has a
// hidden index that is hidden left alone.
func TestCollMod_OfAnIndexLooksAtLittleBefore5(t *testing.T) {
	t.Parallel()
	for version, refused := range map[string]string{"4.4": `null`, "5.0": `72`} {
		h := startVersion(t, version)
		ask(t, h.db, []answer{
			{`{"createIndexes": "c", "indexes": [{"key": {"at": 1}, "name": "at", "expireAfterSeconds": 100}]}`, `{"ok": 1.0}`},
			{`{"collMod": "c", "index": {"name": "at", "expireAfterSeconds": 5, "nosuch": 1}}`, `{"code": ` + refused + `}`},
			{`{"collMod": "c", "index": {"name": "at", "expireAfterSeconds": {"$numberLong": "4000000000"}}}`, `{"code": ` + refused + `}`},
			{`{"collMod": "c", "index": {"name": "at", "expireAfterSeconds": -1}}`, `{"code": ` + refused + `}`},
			{`{"collMod": "c", "index": {"name": "at", "hidden": false}}`, `{"ok": 1.0, "hidden_old": null}`},
			{`{"collMod": "c", "index": {"name": "_id_", "hidden": true}}`, `{"code": 2}`},
		})
	}
	h := startVersion(t, "4.4")
	ask(t, h.db, []answer{
		{`{"createIndexes": "c", "indexes": [{"key": {"at": 1}, "name": "at", "expireAfterSeconds": 100}]}`, `{"ok": 1.0}`},
		{
			`{"collMod": "c", "index": {"name": "at", "expireAfterSeconds": {"$numberLong": "4000000000"}}}`,
			`{"expireAfterSeconds_old": 100, "expireAfterSeconds_new": {"$numberLong": "4000000000"}}`,
		},
		{`{"listIndexes": "c"}`, `{"cursor.firstBatch.1.expireAfterSeconds": {"$numberLong": "4000000000"}}`},
		{`{"collMod": "c", "index": {"name": "at", "expireAfterSeconds": -5}}`, `{"expireAfterSeconds_new": -5}`},
		{`{"listIndexes": "c"}`, `{"cursor.firstBatch.1.expireAfterSeconds": {"$numberLong": "-5"}}`},
	})
}
