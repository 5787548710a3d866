package mongoserver_test

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/engine"
)

// inSession is a command of the one session that a test has, in Extended JSON,
// and the code that it is refused with, 0 for none.
type inSession struct {
	command string
	code    int32
}

// converse sends commands over one connection that adds nothing to them. In a
// command, T5 stands for what makes it a statement of transaction 5, B5 for what
// makes it the first one, N5 for what makes it retryable write 5, and LSID for
// the id of the session. It gives the replies.
func converse(t *testing.T, steps []inSession) (replies []bson.Raw) {
	t.Helper()
	return converseWith(t, startStoppable(t, engine.New(engine.Config{})), steps)
}

// converseWith does so with a server that runs.
func converseWith(t *testing.T, h *harness, steps []inSession) (replies []bson.Raw) {
	t.Helper()
	client := newRawClient(t, h.server.Addr().String())
	const lsid = `{"id": {"$binary": {"base64": "EBESExQVFhcYGRobHB0eHw==", "subType": "04"}}}`
	words := []string{"LSID", lsid}
	for n := range 9 {
		number := fmt.Sprintf(`"lsid": %s, "txnNumber": {"$numberLong": "%d"}`, lsid, n)
		words = append(words,
			fmt.Sprintf("N%d", n), number,
			fmt.Sprintf("T%d", n), number+`, "autocommit": false`,
			fmt.Sprintf("B%d", n), number+`, "autocommit": false, "startTransaction": true`)
	}
	for _, step := range steps {
		var command bson.D
		must(t, bson.UnmarshalExtJSON([]byte(strings.NewReplacer(words...).Replace(step.command)), false, &command))
		if !strings.Contains(step.command, `"$db"`) {
			command = append(command, bson.E{Key: "$db", Value: "shop"})
		}
		body, err := bson.Marshal(command)
		must(t, err)
		reply, err := client.roundTrip(message{body: body}, stepLimit)
		must(t, err)
		code, _ := reply.Lookup("code").Int32OK()
		if errors, err := reply.LookupErr("writeErrors", "0", "code"); err == nil {
			code = errors.Int32()
		}
		if code != step.code {
			t.Errorf("%s: got code %d in %s, want %d", step.command, code, reply, step.code)
		}
		replies = append(replies, reply)
	}
	return replies
}

// https://www.mongodb.com/docs/v4.4/core/transactions/#restricted-operations
func TestTransactions_RefuseWhatTheServerDoes(t *testing.T) {
	t.Parallel()
	for _, refused := range []string{
		`{"killCursors": "c", "cursors": [{"$numberLong": "1"}], B1}`,
		`{"find": "c", "$db": "admin", B1}`,
		`{"find": "c", "$db": "config", B1}`,
		`{"find": "c", "$db": "local", B1}`,
		`{"insert": "c", "documents": [{"_id": 1}], "$db": "config", B1}`,
		`{"count": "c", B1}`,
		`{"listCollections": 1, B1}`,
		`{"listIndexes": "c", B1}`,
		`{"explain": {"find": "c"}, B1}`,
		`{"aggregate": "c", "pipeline": [{"$out": "d"}], "cursor": {}, B1}`,
		`{"aggregate": "c", "pipeline": [{"$collStats": {"count": {}}}], "cursor": {}, B1}`,
	} {
		converse(t, []inSession{
			{`{"create": "c"}`, 0},
			{refused, 263},
			{`{"commitTransaction": 1, "$db": "admin", T1}`, 251},
		})
	}
}

// What was there at an earlier time is not kept: the present state would be a wrong answer.
func TestTransactions_ReadAtNoTimeThatHasPassed(t *testing.T) {
	t.Parallel()
	replies := converse(t, []inSession{
		{`{"insert": "c", "documents": [{"_id": 1}]}`, 0},
		{`{"find": "c", "readConcern": {"level": "snapshot", "atClusterTime": {"$timestamp": {"t": 1, "i": 1}}}, B1}`, 239},
	})
	if label, err := replies[1].LookupErr("errorLabels", "0"); err != nil || label.StringValue() != "TransientTransactionError" {
		t.Errorf("got %s, want the label of a transaction that can be run again", replies[1])
	}
}

func TestTransactions_KillCursorsMayFollowAnotherStatement(t *testing.T) {
	t.Parallel()
	converse(t, []inSession{
		{`{"find": "c", B1}`, 0},
		{`{"killCursors": "c", "cursors": [{"$numberLong": "1"}], T1}`, 0},
		{`{"commitTransaction": 1, "$db": "admin", T1}`, 0},
	})
}

func TestTransactionNumbers_BelongToATransactionOrARetryableWrite(t *testing.T) {
	t.Parallel()
	converse(t, []inSession{
		{`{"insert": "c", "documents": [{"_id": 1}], B1}`, 0},
		{`{"insert": "c", "documents": [{"_id": 2}], N1}`, 72},
		{`{"insert": "c", "documents": [{"_id": 2}], T1}`, 0},
		{`{"commitTransaction": 1, "$db": "admin", N1}`, 50768},
		{`{"commitTransaction": 1, "$db": "admin", T1}`, 0},
		{`{"insert": "c", "documents": [{"_id": 3}], N1}`, 72},
		{`{"insert": "c", "documents": [{"_id": 3}], T1}`, 256},
		{`{"insert": "c", "documents": [{"_id": 3}], N2}`, 0},
		{`{"insert": "c", "documents": [{"_id": 4}], T2}`, 251},
		{`{"insert": "c", "documents": [{"_id": 4}], B2}`, 117},
		{`{"abortTransaction": 1, "$db": "admin", T1}`, 225},
	})
}

// https://www.mongodb.com/docs/v4.4/reference/command/killSessions/
func TestKillSessions_AbortsTheTransactionAndKeepsTheNumber(t *testing.T) {
	t.Parallel()
	converse(t, []inSession{
		{`{"insert": "c", "documents": [{"_id": 1}], N3}`, 0},
		{`{"killSessions": [LSID]}`, 0},
		{`{"insert": "c", "documents": [{"_id": 1}], N3}`, 0}, // known, so not done again
		{`{"insert": "c", "documents": [{"_id": 2}], N2}`, 225},
		{`{"insert": "c", "documents": [{"_id": 2}], B4}`, 0},
		{`{"killSessions": [LSID]}`, 0},
		{`{"commitTransaction": 1, "$db": "admin", T4}`, 251},
		{`{"insert": "c", "documents": [{"_id": 2}], B3}`, 225},
		{`{"insert": "c", "documents": [{"_id": 2}], B5}`, 0},
		{`{"commitTransaction": 1, "$db": "admin", T5}`, 0},
	})
}

// https://www.mongodb.com/docs/v4.4/reference/command/killAllSessions/
func TestKillAllSessions_TakesAnArray(t *testing.T) {
	t.Parallel()
	converse(t, []inSession{
		{`{"killAllSessions": []}`, 0},
		{`{"killAllSessions": 1}`, 14},
		{`{"killAllSessions": [{"user": "a", "db": "admin"}]}`, 238},
	})
}

// https://github.com/mongodb/mongo/blob/v6.0/src/mongo/db/ops/write_ops.idl
func TestRetryableWrites_NumberTheirStatements(t *testing.T) {
	t.Parallel()
	replies := converse(t, []inSession{
		{`{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}], "stmtIds": [5, 6], N1}`, 0},
		{`{"insert": "c", "documents": [{"_id": 2}, {"_id": 3}], "stmtIds": [6, 7], N1}`, 0},
		{`{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}], "stmtId": 5, N1}`, 0},
		{`{"insert": "c", "documents": [{"_id": 1}], "stmtId": 8, N1}`, 11000},
		{`{"insert": "c", "documents": [{"_id": 4}], "stmtIds": [-1], N1}`, 0},
		{`{"insert": "c", "documents": [{"_id": 4}], "stmtIds": [-1], N1}`, 11000},
		{`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}], "stmtId": 1, N2}`, 0},
		{`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}], "stmtIds": [1], N2}`, 0},
		{`{"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}], "stmtIds": [4], N3}`, 0},
		{`{"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}], "stmtId": 4, N3}`, 0},
		{`{"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"n": 1}}, "stmtId": 3, N4}`, 0},
		{`{"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"n": 1}}, "stmtId": 3, N4}`, 0},
		{`{"insert": "c", "documents": [{"_id": 9}], "stmtIds": [1, 2], N5}`, 16},
		{`{"insert": "c", "documents": [{"_id": 9}], "stmtIds": [1], "stmtId": 1, N5}`, 72},
		{`{"insert": "c", "documents": [{"_id": 9}], "stmtId": "x", N5}`, 14},
		{`{"find": "c", "filter": {"_id": 1}}`, 0},
	})
	for i, want := range map[int]string{1: "[6]", 2: "[5 6]", 7: "[1]", 9: "[4]"} {
		var got struct {
			RetriedStmtIDs []int32 `bson:"retriedStmtIds"`
		}
		must(t, bson.Unmarshal(replies[i], &got))
		if have := fmt.Sprint(got.RetriedStmtIDs); have != want {
			t.Errorf("reply %d: got retriedStmtIds %s, want %s", i, have, want)
		}
	}
	if got := replies[11].Lookup("retriedStmtId").Int32(); got != 3 {
		t.Errorf("findAndModify: got retriedStmtId %d, want 3", got)
	}
	if got := replies[15].Lookup("cursor", "firstBatch", "0", "n").Int32(); got != 2 {
		t.Errorf("got %d increments, want 2: each once", got)
	}
}
