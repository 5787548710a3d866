package changestream_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/testserver"
)

func TestHistory_ATokenThatTheOplogNoLongerHoldsIsFoundByTheReader(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t, "--oplog-entries", "40")
	events := testserver.Connect(t, servers.MongoURI).Database("shop").Collection("events")
	start := now(t, events)
	insert(t, events, 1, 10)
	token := read(t, from(t, events, start), 5)[4].Token
	insert(t, events, 11, 100)
	_, err := from(t, events, changestream.Start{Token: token}).Read(t.Context())
	halt, ok := errors.AsType[*changestream.HaltError](err)
	if !ok || halt.Reason != changestream.HistoryLost || !strings.Contains(err.Error(), "oldest entry of the operation log is later") {
		t.Errorf("Read = %v, want history lost by comparison with the oldest entry", err)
	}
}

// TestStream_AnOplogThatDoesNotAnswerIsAskedAgain cuts the first question off: no
// answer is not the one that the log reaches back.
func TestStream_AnOplogThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t, "--oplog-entries", "40")
	client := testserver.Connect(t, servers.MongoURI)
	events := client.Database("shop").Collection("events")
	start := now(t, events)
	insert(t, events, 1, 10)
	token := read(t, from(t, events, start), 5)[4].Token
	insert(t, events, 11, 100)
	fail(t, client, "find", 50) // MaxTimeMSExpired
	_, err := from(t, events, changestream.Start{Token: token}).Read(t.Context())
	if !lostHistory(err) || !strings.Contains(err.Error(), "oldest entry of the operation log is later") {
		t.Errorf("Read = %v, want history lost by comparison with the oldest entry", err)
	}
	// The driver asks a second time by itself.
	err = client.Database("admin").RunCommand(t.Context(), bson.D{
		{Key: "configureFailPoint", Value: "failCommand"},
		{Key: "mode", Value: bson.D{{Key: "times", Value: 2}}},
		{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "closeConnection", Value: true}}},
	}).Err()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := from(t, events, changestream.Start{Token: token}).Read(t.Context()); !lostHistory(err) || !strings.Contains(err.Error(), "oldest entry of the operation log is later") {
		t.Errorf("Read = %v behind lost connections, want history lost by comparison with the oldest entry", err)
	}
	var log bytes.Buffer
	fail(t, client, "find", 13) // Unauthorized
	withheld := changestream.New(changestream.Of(events), changestream.Start{Token: token}, zerolog.New(&log))
	t.Cleanup(func() { withheld.Close(context.WithoutCancel(t.Context())) })
	if _, err := withheld.Read(t.Context()); !lostHistory(err) || !strings.Contains(log.String(), "local.oplog.rs") {
		t.Errorf("Read = %v, and the log is %s, want the server's own word, and a warning", err, &log)
	}
}

func TestHistory_AFatalErrorIsLostHistoryOnlyRightAfterResuming(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t) // fail points are the whole server's
	client := testserver.Connect(t, servers.MongoURI)
	events := client.Database("shop").Collection("events")
	start := now(t, events)

	resumed := from(t, events, start)
	fail(t, client, "getMore", 280)
	if _, err := readSome(t.Context(), resumed, 1); !lostHistory(err) {
		t.Errorf("Read = %v, want history lost when nothing was read before", err)
	}

	stream := from(t, events, start)
	insert(t, events, 1, 1)
	read(t, stream, 1)
	fail(t, client, "getMore", 280)
	insert(t, events, 2, 2)
	wantNumbers(t, read(t, stream, 1), 2, 2)
}

// TestHistory_ThatIsLostWhileItIsReadIsLost has a source answer so from one change on:
// when it is asked for more, and when the stream is opened again.
func TestHistory_ThatIsLostWhileItIsReadIsLost(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	client := testserver.Connect(t, servers.MongoURI)
	events := client.Database("shop").Collection("events")
	stream := from(t, events, now(t, events))
	insert(t, events, 1, 1)
	read(t, stream, 1)
	failAlways(t, client, 280, "getMore", "aggregate")
	if _, err := readSome(t.Context(), stream, 1); !lostHistory(err) {
		t.Errorf("Read = %v, want history lost", err)
	}
}

// TestHistory_OfATokenWhoseChangeTheSourceLacksIsLost resumes at that of another collection.
func TestHistory_OfATokenWhoseChangeTheSourceLacksIsLost(t *testing.T) {
	t.Parallel()
	events := collection(t)
	others := events.Database().Collection("others")
	stream := from(t, others, now(t, others))
	insert(t, others, 1, 1)
	token := read(t, stream, 1)[0].Token
	insert(t, events, 1, 1)
	if _, err := readSome(t.Context(), from(t, events, changestream.Start{Token: token}), 1); !lostHistory(err) {
		t.Errorf("Read = %v, want history lost", err)
	}
}

func lostHistory(err error) bool {
	halt, ok := errors.AsType[*changestream.HaltError](err)
	return ok && halt.Reason == changestream.HistoryLost
}

func TestHistory_AChangeThatIsTooLargeIsNamedByItsKey(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	client := testserver.Connect(t, servers.MongoURI)
	events := client.Database("shop").Collection("events")
	start := now(t, events)
	insert(t, events, 17, 17)
	fail(t, client, "aggregate", 10334)
	_, err := from(t, events, start).Read(t.Context())
	halt, ok := errors.AsType[*changestream.HaltError](err)
	if !ok || halt.Reason != changestream.ChangeTooLarge {
		t.Fatalf("Read = %v, want a change that is too large", err)
	}
	for _, want := range []string{`"insert"`, `"17"`, `"events"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not contain %s", err, want)
		}
	}
}

func TestHistory_ARenamedCollectionAndADroppedDatabaseEndNothing(t *testing.T) {
	t.Parallel()
	events := collection(t)
	insert(t, events, 1, 1)
	stream := from(t, events, now(t, events))
	database, other := events.Database().Name(), events.Name()+"_old"
	rename := bson.D{{Key: "renameCollection", Value: database + "." + events.Name()}, {Key: "to", Value: database + "." + other}}
	if err := events.Database().Client().Database("admin").RunCommand(t.Context(), rename).Err(); err != nil {
		t.Fatal(err)
	}
	wantOperations(t, stream, "rename", "invalidate")
	insert(t, events, 2, 2)
	wantNumbers(t, read(t, stream, 1), 2, 2)
	if err := events.Database().Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantOperations(t, stream, "drop", "invalidate")
	insert(t, events, 3, 3)
	wantNumbers(t, read(t, stream, 1), 3, 3)
}

func wantOperations(t *testing.T, stream *changestream.Stream, want ...string) {
	t.Helper()
	for i, change := range read(t, stream, len(want)) {
		if got, _ := bson.Raw(change.Raw).Lookup("operationType").StringValueOK(); got != want[i] {
			t.Errorf("change %d is a %s, want %s", i+1, got, want[i])
		}
	}
}

func TestHistory_AFingerprintChangesWithWhatIsRead(t *testing.T) {
	t.Parallel()
	database := collection(t).Database()
	source := changestream.Source{Database: database, Collections: []string{"a", "b"}}
	fingerprint := func(change func(*changestream.Source)) string {
		changed := source
		change(&changed)
		text, err := changed.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	same := fingerprint(func(*changestream.Source) {})
	if got := fingerprint(func(s *changestream.Source) { s.Collections = []string{"b", "a"} }); got != same {
		t.Errorf("the order of collections changes the fingerprint")
	}
	for name, change := range map[string]func(*changestream.Source){
		"collections":    func(s *changestream.Source) { s.Collections = []string{"a"} },
		"filter":         func(s *changestream.Source) { s.Filter = bson.D{{Key: "x", Value: 1}} },
		"full document":  func(s *changestream.Source) { s.FullDocument = options.UpdateLookup },
		"pre-images":     func(s *changestream.Source) { s.BeforeChange = options.Required },
		"whole database": func(s *changestream.Source) { s.Collections = nil },
	} {
		if fingerprint(change) == same {
			t.Errorf("%s: the fingerprint stays the same", name)
		}
	}
}
