package mongoserver_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// query_request.cpp, count_request.cpp, write_ops_parsers.cpp.
func TestArguments_NumbersAreReadAsEachCommandDoes(t *testing.T) {
	t.Parallel()
	ask(t, startVersion(t, "4.4").db, []answer{
		{`{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]}`, `{"n": 3}`},
		{`{"find": "c", "limit": {"$numberDecimal": "1.5"}}`, `{"cursor.firstBatch": [{"_id": 1}, {"_id": 2}]}`},
		{`{"find": "c", "limit": {"$numberDecimal": "2.5"}}`, `{"cursor.firstBatch": [{"_id": 1}, {"_id": 2}]}`},
		{`{"find": "c", "limit": 1.9}`, `{"cursor.firstBatch": [{"_id": 1}]}`},
		{`{"count": "c", "limit": 2.0}`, `{"n": 2}`},
		{`{"count": "c", "limit": {"$numberDecimal": "-2"}}`, `{"n": 2}`},
		{`{"count": "c", "limit": 1.5}`, `{"code": 9}`},
		{`{"count": "c", "limit": {"$numberDecimal": "1.5"}}`, `{"code": 9}`},
		{`{"count": "c", "limit": "x"}`, `{"code": 2}`},
		{`{"count": "c", "limit": null}`, `{"code": 2}`},
		{`{"count": "c", "limit": {"$numberLong": "-9223372036854775808"}}`, `{"code": 2}`},
		{`{"count": "c", "skip": -1}`, `{"code": 9}`},
		{`{"count": "c", "skip": 0.5}`, `{"code": 9}`},
		{`{"count": "c", "skip": true}`, `{"code": 2}`},
		{`{"explain": {"count": "c", "skip": -1}}`, `{"code": 9}`},
		{`{"delete": "c", "deletes": [{"q": {}, "limit": 0.5}]}`, `{"code": 9}`},
		{`{"delete": "c", "deletes": [{"q": {}, "limit": {"$numberDecimal": "2"}}]}`, `{"code": 9}`},
		{`{"delete": "c", "deletes": [{"q": {}, "limit": 1.0}]}`, `{"n": 1}`},
		{`{"delete": "c", "deletes": [{"q": {}, "limit": "x"}]}`, `{"n": 2}`},
		{`{"delete": "c", "deletes": [{"q": {}, "limit": null}]}`, `{"n": 0}`},
	})
}

// query_request.cpp of 4.4, find_command.idl of 5.0.
func TestArguments_NullIsNoDocumentOfAFindBefore5(t *testing.T) {
	t.Parallel()
	for _, option := range []string{"filter", "sort", "projection", "min", "max", "collation"} {
		find := `{"find": "c", "` + option + `": null}`
		ask(t, startVersion(t, "4.4").db, []answer{{find, `{"code": 9}`}})
		ask(t, startVersion(t, "5.0").db, []answer{{find, `{"ok": 1.0}`}})
	}
}

// The driver's specification tests, crud/unified/distinct-comment.json and
// estimatedDocumentCount-comment.json, as a real 4.4.1 passes them.
func TestArguments_ACommentOfACountIsATextBefore5(t *testing.T) {
	t.Parallel()
	for _, command := range []string{`{"count": "c", "comment": %s}`, `{"distinct": "c", "key": "a", "comment": %s}`} {
		for _, comment := range []string{`{"by": "me"}`, "5"} {
			text := fmt.Sprintf(command, comment)
			ask(t, startVersion(t, "4.4").db, []answer{{text, `{"code": 14}`}, {fmt.Sprintf(command, `"x"`), `{"ok": 1.0}`}})
			ask(t, startVersion(t, "5.0").db, []answer{{text, `{"ok": 1.0}`}})
		}
	}
}

// document_source_out.cpp, document_source_coll_stats.cpp,
// document_source_current_op.cpp, document_source_list_local_sessions.h.
func TestAggregate_RefusesTheOptionsOfItsEnds(t *testing.T) {
	t.Parallel()
	ask(t, startVersion(t, "4.4").db, []answer{
		{`{"insert": "c", "documents": [{"_id": 1}]}`, `{"n": 1}`},
		{`{"aggregate": "c", "pipeline": [{"$out": {"coll": "o"}}], "cursor": {}}`, `{"code": 16994}`},
		{`{"aggregate": "c", "pipeline": [{"$out": {"db": "o"}}], "cursor": {}}`, `{"code": 16994}`},
		{`{"aggregate": "c", "pipeline": [{"$out": {"db": "o", "coll": "c", "mode": "x"}}], "cursor": {}}`, `{"code": 16994}`},
		{`{"aggregate": "c", "pipeline": [{"$out": 5}], "cursor": {}}`, `{"code": 16990}`},
		{`{"aggregate": "c", "pipeline": [{"$merge": {"into": {"coll": "o"}}}], "cursor": {}}`, `{"ok": 1.0}`},
		{`{"aggregate": "c", "pipeline": [{"$collStats": 5}], "cursor": {}}`, `{"code": 40166}`},
		{`{"aggregate": "c", "pipeline": [{"$collStats": {"count": 5}}], "cursor": {}}`, `{"code": 40480}`},
		{`{"aggregate": "c", "pipeline": [{"$collStats": {"storageStats": 5}}], "cursor": {}}`, `{"code": 40279}`},
		{`{"aggregate": "c", "pipeline": [{"$collStats": {"nosuch": {}}}], "cursor": {}}`, `{"code": 40168}`},
		{`{"aggregate": "c", "pipeline": [{"$currentOp": {}}], "cursor": {}}`, `{"code": 73}`},
		{`{"aggregate": "c", "pipeline": [{"$listLocalSessions": {}}], "cursor": {}}`, `{"code": 73}`},
		{`{"create": "x", "storageEngine": {"nosuch": {}}}`, `{"code": 72}`},
		{`{"create": "x", "storageEngine": {"wiredTiger": {}}}`, `{"ok": 1.0}`},
	})
}

// write_ops_exec.cpp of 4.4: an insert that ends with a statement done before
// does not insert those that wait for the batch to be full.
func TestRetry_AnInsertThatEndsWithADoneStatementForgetsThoseBefore(t *testing.T) {
	t.Parallel()
	many := `{"_id": 100}`
	for i := range 63 {
		many += fmt.Sprintf(`, {"_id": %d}`, 101+i)
	}
	steps := []inSession{
		{`{"insert": "c", "documents": [{"_id": 1}]}`, 0},
		{`{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}], "ordered": false, N1}`, 11000},
		{`{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}], "ordered": false, N1}`, 0},
		{`{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}], "ordered": false, N1}`, 11000},
		{`{"insert": "d", "documents": [` + many + `, {"_id": 8}, {"_id": 9}], "stmtIds": [` + numbers(2, 66) + `, 1], N1}`, 0},
		{`{"count": "d"}`, 0},
	}
	replies := converseWith(t, startVersion(t, "4.4"), steps)
	if n := replies[2].Lookup("n").Int32(); n != 1 {
		t.Errorf("got n %d of the retry, want 1", n)
	}
	// A whole batch is stored; what waits behind it is not.
	if n := replies[5].Lookup("n").Int32(); n != 64 {
		t.Errorf("got %d documents, want 64", n)
	}
	steps[2].code = 11000
	converseWith(t, startVersion(t, "5.0"), steps)
}

// numbers lists the numbers from first to last.
func numbers(first, last int) string {
	var listed []string
	for n := first; n <= last; n++ {
		listed = append(listed, strconv.Itoa(n))
	}
	return strings.Join(listed, ", ")
}
