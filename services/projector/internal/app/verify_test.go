package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/rebuild"
)

// verifiable are a projection with a version, one without that looks at its state, and
// one with a key.
const verifiable = `projections:
  - name: orders
    version: 1
    collection: orders
    on: {Happened: {inc: {events: 1, sum: data.n}, push: {seen: data.n}}, Erased: {delete: true}}
  - name: states
    collection: states
    on: {Happened: {when: data.n != 2, set: {last: data.n, before: 'state?.last ?? 0'}}, Failed: {set: {last: data.gone}}, Erased: {delete: true}}
  - name: totals
    collection: totals
    key: '"all"'
    on: {Happened: {inc: {events: 1}}}
`

// verifying is a read database with a running projector, and a publisher's command line
// that prints what the test says the source has.
type verifying struct {
	t           *testing.T
	db          *mongo.Database
	topic       string
	dir         string
	publisher   string
	cfg         config.Config
	projections projection.Projections
	// built are those of the program's code.
	built projection.Projections
	stop  func()
}

func newVerifying(t *testing.T, topic string, built ...projection.Projection) *verifying {
	t.Helper()
	client, database := servers.Mongo(t, nil)
	dir := t.TempDir()
	v := &verifying{t: t, db: client.Database(database), topic: topic, dir: dir, publisher: filepath.Join(dir, "publisher"), cfg: configured(t, topic, database), built: built}
	// What it prints the first time is that of 1, where there is such a directory.
	script := fmt.Sprintf(`#!/bin/sh
cd %s; from=now; if [ -d 1 ]; then mv 1 first; from=first; fi
echo "$@" >>asked
for a; do case $a in --all|--sample) cat $from/* 2>/dev/null;; --aggregate=*) cat "$from/${a#--aggregate=}" 2>/dev/null;; esac; done
[ -f cutshort ] || echo '{"end":{"messages":1,"unmappable":0}}'
`, dir)
	if err := os.WriteFile(v.publisher, []byte(script), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	onTopic(t, topic, database, verifiable)
	v.cfg.Projections = os.Getenv("PROJECTIONS")
	v.projections = slices.Concat(built, load(t, v.cfg.Projections))
	if _, err := runIn(config.BuiltWith(t.Context(), built), t, "setup"); err != nil {
		t.Fatal(err)
	}
	v.stop = keep(t, v.cfg, v.projections)
	return v
}

// line is an event as publisher events prints it.
func line(t *testing.T, e contract.Event) string {
	t.Helper()
	m, err := contract.Encode(e, contract.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"message": map[string]any{
		"message_id": m.ID, "session_id": m.SessionID, "subject": m.Subject, "content_type": m.ContentType, "properties": m.Properties, "body": json.RawMessage(m.Body),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// has the source have events, all of one aggregate, in a directory of the publisher.
func (v *verifying) has(directory string, events ...contract.Event) {
	v.t.Helper()
	if err := os.MkdirAll(filepath.Join(v.dir, directory), 0o700); err != nil {
		v.t.Fatal(err)
	}
	var lines strings.Builder
	for _, e := range events {
		lines.WriteString(line(v.t, e))
	}
	if err := os.WriteFile(filepath.Join(v.dir, directory, events[0].AggregateID), []byte(lines.String()), 0o600); err != nil {
		v.t.Fatal(err)
	}
}

// happen has events written to the source and sent.
func (v *verifying) happen(aggregate string, versions ...int64) {
	v.t.Helper()
	events := happens(aggregate, versions...)
	v.has("now", events...)
	send(v.t, v.topic, events...)
}

func (v *verifying) sees(collection, id string) bson.M {
	v.t.Helper()
	var document bson.M
	err := v.db.Collection(collection).FindOne(v.t.Context(), bson.D{{Key: "_id", Value: id}}).Decode(&document)
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		v.t.Fatal(err)
	}
	return document
}

// awaitSequence waits until a document is at a version.
func (v *verifying) awaitSequence(collection, id string, version int64) {
	v.t.Helper()
	until(v.t, fmt.Sprintf("%s of %s is at version %d", id, collection, version), func() bool {
		relay, _ := v.sees(collection, id)["_relay"].(bson.D)
		for _, e := range relay {
			if e.Key == "aggregateVersion" {
				return e.Value == version
			}
		}
		return false
	})
}

// set alters a document by hand.
func (v *verifying) set(collection, id, field string, value any) {
	v.t.Helper()
	result, err := v.db.Collection(collection).UpdateByID(v.t.Context(), id, bson.D{{Key: "$set", Value: bson.D{{Key: field, Value: value}}}})
	if err != nil || result.MatchedCount != 1 {
		v.t.Fatalf("alter %s of %s: %v, %v", id, collection, result, err)
	}
}

func (v *verifying) remove(collection, id string) {
	v.t.Helper()
	if _, err := v.db.Collection(collection).DeleteOne(v.t.Context(), bson.D{{Key: "_id", Value: id}}); err != nil {
		v.t.Fatal(err)
	}
}

// found runs verify, and returns the differences that it prints, and its last line.
func (v *verifying) found(args ...string) (differences map[string]string, last map[string]any, err error) {
	v.t.Helper()
	lines, err := runIn(config.BuiltWith(v.t.Context(), v.built), v.t, append([]string{"verify"}, args...)...)
	differences = map[string]string{}
	for _, l := range lines {
		if l["difference"] == nil {
			last = l
			continue
		}
		id := fmt.Sprint(l["aggregate"])
		if l["document"] != nil {
			id = fmt.Sprint(l["document"])
		}
		differences[fmt.Sprintf("%s %s", l["projection"], id)] = fmt.Sprint(l["difference"])
	}
	v.wantNothingLeft()
	return differences, last, err
}

func (v *verifying) wantNothingLeft() {
	v.t.Helper()
	if n, err := v.db.Collection("recomputed_documents").CountDocuments(v.t.Context(), bson.D{}); err != nil || n != 0 {
		v.t.Errorf("%d recomputed documents are left, %v", n, err)
	}
}

// wantEqual runs verify, and wants no difference.
func (v *verifying) wantEqual(args ...string) map[string]any {
	v.t.Helper()
	differences, last, err := v.found(append([]string{"--publisher", v.publisher}, args...)...)
	if err != nil || len(differences) > 0 || last["verified"] != true {
		v.t.Errorf("verify: got %v, %v and %v, want no difference", differences, last, err)
	}
	return last
}

func wantDifferences(t *testing.T, got, want map[string]string) {
	t.Helper()
	for id, how := range want {
		if got[id] != how {
			t.Errorf("%s: got %q, want %q", id, got[id], how)
		}
	}
	for id, how := range got {
		if want[id] == "" {
			t.Errorf("%s is said to be %s, and is right", id, how)
		}
	}
}

// Documents that were altered, lost, doubled and moved by hand are found, and each by
// itself; what is offered mends them; and then everything is as the source says.
func TestVerify_FindsWhatWasDoneByHandAndOffersWhatMendsIt(t *testing.T) {
	v := newVerifying(t, "verify")
	for _, id := range []string{"altered", "typed", "lost", "hidden", "doubled", "lowered", "raised", "right"} {
		v.happen(id, 1, 2, 3)
	}
	erased := append(happens("erased", 1), event("erased", 2, "Erased", `{}`))
	v.has("now", erased...)
	send(t, v.topic, erased...)
	for _, id := range []string{"altered", "typed", "lost", "hidden", "doubled", "lowered", "raised", "right"} {
		v.awaitSequence("orders_v1", id, 3)
		v.awaitSequence("states", id, 3)
	}
	v.awaitSequence("orders_v1", "erased", 2)
	if last := v.wantEqual(); last["aggregates"] != 9.0 || last["events"] != 26.0 || last["not_compared"].(map[string]any)["totals"] == nil {
		t.Errorf("the sum: got %v, want 9 aggregates, 26 events, and totals not compared", last)
	}

	v.set("orders_v1", "altered", "sum", 99)
	v.set("states", "altered", "before", 7)
	v.set("orders_v1", "typed", "sum", int64(6))
	v.remove("orders_v1", "lost")
	v.remove("states", "lost")
	v.set("orders_v1", "hidden", "_relay.deletedAt", time.Now())
	v.set("states", "lowered", "_relay.sequence", "0000000000000000001")
	v.set("orders_v1", "raised", "_relay.sequence", "0000000000000000009")
	v.set("orders_v1", "erased", "_relay.sequence", "0000000000000000009")
	for _, id := range []any{"twin", bson.NewObjectID()} {
		twin := v.sees("orders_v1", "doubled")
		twin["_id"] = id
		if _, err := v.db.Collection("orders_v1").InsertOne(t.Context(), twin); err != nil {
			t.Fatal(err)
		}
	}
	stranger := bson.M{}
	if err := v.db.Collection("orders_v1").FindOne(t.Context(), bson.D{{Key: "_id", Value: bson.D{{Key: "$type", Value: "objectId"}}}}).Decode(&stranger); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"orders altered": "altered", "states altered": "altered", "orders typed": "altered", "orders lost": "lost", "states lost": "lost",
		"orders hidden": "lost", "states lowered": "altered", "orders raised": "altered", "orders erased": "altered", "orders twin": "extra",
		fmt.Sprintf("orders {\"$oid\":%q}", stranger["_id"].(bson.ObjectID).Hex()): "extra",
	}
	differences, last, err := v.found("--publisher", v.publisher, "--wait", "1ms")
	if err == nil || errors.Is(err, cli.ErrUsage) {
		t.Errorf("verify: got %v, want it to fail", err)
	}
	wantDifferences(t, differences, want)
	if differences, _, err = v.found("--publisher", v.publisher, "--sample", "100", "--wait", "1ms"); err == nil {
		t.Errorf("verify of a sample: got no error")
	}
	wantDifferences(t, differences, want)
	if differences, _, err = v.found("--publisher", v.publisher, "--aggregate", "altered", "--aggregate", "twin", "--projection", "orders", "--wait", "1ms"); err == nil {
		t.Errorf("verify of aggregates: got no error")
	}
	wantDifferences(t, differences, map[string]string{"orders altered": "altered", "orders twin": "extra"})

	noted := func() string {
		t.Helper()
		found, err := readmodel.New(v.db.Client(), readmodel.Config{Database: v.db.Name()}).Comparison.LastVerified(t.Context())
		if err != nil || found == nil {
			t.Fatalf("what is noted for the metric: %v, %v", found, err)
		}
		return fmt.Sprint(found.Differences)
	}
	if got := noted(); got != fmt.Sprint(len(want)) {
		t.Errorf("noted are %s differences, want those of the sample, %d", got, len(want))
	}
	commands, _ := last["commands"].([]any)
	if len(commands) != 2 || strings.Contains(fmt.Sprint(commands), "twin") || last["doubtful"] != 1.0 {
		t.Fatalf("offered: got %v, want a command for each projection, and none for what the source has nothing of", last)
	}
	if lines, err := runCommand(t, "rebuild", "--aggregate", "twin", "--why", "a test", "--publisher", v.publisher); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("of what the source has nothing of: got %v and %v, want it left", lines, err)
	}
	for _, command := range commands {
		words := strings.Fields(strings.ReplaceAll(strings.TrimPrefix(fmt.Sprint(command), "projector "), "'verify found them different'", "different"))
		if lines, err := runCommand(t, append(words, "--dry-run")...); err != nil || lines[len(lines)-1]["dry_run"] != true {
			t.Errorf("%s, rehearsed: got %v and %v", command, lines, err)
		}
		if lines, err := runCommand(t, words...); err != nil {
			t.Errorf("%s: got %v and %v", command, lines, err)
		}
		v.wantNothingLeft()
	}
	// The document may be all there is of it, so it is printed.
	lines, err := runCommand(t, "rebuild", "--projection", "orders", "--aggregate", "twin", "--force", "--why", "a test", "--publisher", v.publisher)
	if err != nil || len(lines) != 2 || lines[0]["was"].(map[string]any)["sum"] != 6.0 || lines[0]["partly"] != "the source has nothing of the aggregate" {
		t.Errorf("forced: got %v and %v, want the document that was removed", lines, err)
	}
	differences, _, _ = v.found("--publisher", v.publisher, "--wait", "1ms")
	wantDifferences(t, differences, map[string]string{fmt.Sprintf("orders {\"$oid\":%q}", stranger["_id"].(bson.ObjectID).Hex()): "extra"})
	if _, err := v.db.Collection("orders_v1").DeleteOne(t.Context(), bson.D{{Key: "_id", Value: stranger["_id"]}}); err != nil {
		t.Fatal(err)
	}
	v.wantEqual()
	if got := noted(); got != "0" {
		t.Errorf("noted are %s differences, want none", got)
	}
	// Events go on from there.
	reborn := append(slices.Clone(erased), happens("erased", 3)...)
	v.has("now", reborn...)
	send(t, v.topic, happens("erased", 3)...)
	v.awaitSequence("orders_v1", "erased", 3)
	for _, id := range []string{"altered", "lost", "hidden", "lowered", "raised"} {
		v.has("now", happens(id, 1, 2, 3, 4)...)
		send(t, v.topic, happens(id, 4)...)
		v.awaitSequence("orders_v1", id, 4)
		v.awaitSequence("states", id, 4)
	}
	v.wantEqual()
	if ledger, err := runCommand(t, "ledger"); err != nil || !strings.Contains(fmt.Sprint(ledger), "rebuild --aggregate") {
		t.Errorf("the ledger: got %v and %v, want who has mended what", ledger, err)
	}
}

// A document that has moved on since the source was read is looked at again, at its own
// position, and one behind the source is right for its position.
func TestVerify_ComparesAtOnePosition(t *testing.T) {
	v := newVerifying(t, "verify-moves")
	v.happen("moves", 1, 2, 3)
	v.happen("born", 1)
	v.awaitSequence("orders_v1", "moves", 3)
	v.awaitSequence("states", "moves", 3)
	v.awaitSequence("states", "born", 1)
	// The first time the source is asked it does not have what readers see already.
	v.has("1", happens("moves", 1, 2)...)
	v.wantEqual("--wait", "1ms")
	// And the projectors do not have what the source has.
	v.has("now", happens("moves", 1, 2, 3, 4, 5)...)
	differences, _, err := v.found("--publisher", v.publisher, "--wait", "1ms")
	if err == nil {
		t.Error("verify: got no error")
	}
	wantDifferences(t, differences, map[string]string{"orders moves": "behind", "states moves": "behind"})
	// Altered, too: then that is what is to be mended.
	v.set("orders_v1", "moves", "sum", 7)
	differences, _, _ = v.found("--publisher", v.publisher, "--wait", "1ms")
	wantDifferences(t, differences, map[string]string{"orders moves": "altered", "states moves": "behind"})
	if lines, err := runCommand(t, "rebuild", "--aggregate", "moves", "--why", "a test", "--publisher", v.publisher); err != nil {
		t.Fatalf("rebuild: got %v and %v", lines, err)
	}
	// It is brought to where the source is; what then comes is a repeat.
	v.awaitSequence("orders_v1", "moves", 5)
	v.awaitSequence("states", "moves", 5)
	v.wantEqual()
	v.has("now", happens("moves", 1, 2, 3, 4, 5, 6)...)
	send(t, v.topic, happens("moves", 4, 5, 6)...)
	v.awaitSequence("orders_v1", "moves", 6)
	v.awaitSequence("states", "moves", 6)
	v.wantEqual()
}

// What is only late comes within the time that it may take.
func TestVerify_WaitsForWhatIsOnItsWay(t *testing.T) {
	v := newVerifying(t, "verify-waits")
	v.happen("a", 1)
	v.awaitSequence("states", "a", 1)
	v.has("now", happens("a", 1, 2, 3)...)
	v.has("now", happens("b", 1)...)
	done := make(chan error, 1)
	go func() {
		lines, err := runCommand(t, "verify", "--publisher", v.publisher, "--wait", "5m")
		done <- errors.Join(err, func() error {
			if len(lines) != 1 {
				return fmt.Errorf("got %v", lines)
			}
			return nil
		}())
	}()
	until(t, "it is looked at again", func() bool {
		asked, _ := os.ReadFile(filepath.Join(v.dir, "asked"))
		return strings.Count(string(asked), "--aggregate=a") >= 2
	})
	send(t, v.topic, happens("a", 2, 3)...)
	send(t, v.topic, happens("b", 1)...)
	if err := <-done; err != nil {
		t.Errorf("verify: got %v, want no difference", err)
	}
}

// Of what was printed before, only what has not changed since is compared.
func TestVerify_OfAFileComparesWhatHasNotChangedSince(t *testing.T) {
	v := newVerifying(t, "verify-kept")
	v.happen("still", 1, 2)
	v.happen("altered", 1, 2)
	v.happen("moves", 1, 2, 3)
	v.happen("born", 1)
	for _, id := range []string{"still", "altered", "moves", "born"} {
		v.awaitSequence("orders_v1", id, map[string]int64{"still": 2, "altered": 2, "moves": 3, "born": 1}[id])
	}
	v.awaitSequence("states", "born", 1)
	v.set("orders_v1", "altered", "sum", 7)
	var text strings.Builder
	for _, e := range append(append(happens("still", 1, 2), happens("altered", 1, 2)...), happens("moves", 1, 2)...) {
		text.WriteString(line(t, e))
	}
	cut := file(t, "cut", text.String())
	if _, _, err := v.found("--events", cut); err == nil || !strings.Contains(err.Error(), "some are missing") {
		t.Errorf("of a file without its end: got %v, want that something is missing", err)
	}
	differences, last, err := v.found("--events", file(t, "whole", text.String()+`{"end":{"messages":6,"unmappable":0}}`+"\n"))
	if err == nil {
		t.Error("verify: got no error")
	}
	wantDifferences(t, differences, map[string]string{"orders altered": "altered"})
	if last["moved_on"] != 4.0 || last["documents"] != 4.0 {
		t.Errorf("the sum: got %v, want 4 documents that have moved on, and 4 compared", last)
	}
	// Nothing says that it is of another source, or older than every document.
	before, err := readmodel.New(v.db.Client(), readmodel.Config{Database: v.db.Name()}).Comparison.LastVerified(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	strange := line(t, event("strange", 1, "Strange", `{}`)) // nothing follows it
	for name, text := range map[string]string{"empty": `{"end":{"messages":0,"unmappable":0}}`, "another": strange + `{"end":{"messages":1,"unmappable":0}}`} {
		_, last, err = v.found("--events", file(t, name, text+"\n"))
		if err == nil || !strings.Contains(err.Error(), "no document was compared") || last["verified"] != false {
			t.Errorf("of a file that is %s: got %v and %v, want that nothing was compared", name, last, err)
		}
	}
	after, err := readmodel.New(v.db.Client(), readmodel.Config{Database: v.db.Name()}).Comparison.LastVerified(t.Context())
	if err != nil || !after.At.Equal(before.At) {
		t.Errorf("noted: got %v and %v, want what was noted before: %v", after, err, before)
	}
}

// A deleted document that a later event makes anew, of its state, is lost with that event.
func TestVerify_FindsThatADeletedDocumentIsToBeMadeAnew(t *testing.T) {
	v := newVerifying(t, "verify-anew")
	gone := append(happens("anew", 1), event("anew", 2, "Erased", `{}`))
	v.has("now", gone...)
	send(t, v.topic, gone...)
	v.awaitSequence("states", "anew", 2)
	v.awaitSequence("orders_v1", "anew", 2)
	v.wantEqual()
	v.has("now", append(gone, happens("anew", 3)...)...)
	differences, _, err := v.found("--publisher", v.publisher, "--wait", "1ms")
	if err == nil {
		t.Error("verify: got no error")
	}
	wantDifferences(t, differences, map[string]string{"orders anew": "behind", "states anew": "behind"})
	if lines, err := runCommand(t, "rebuild", "--aggregate", "anew", "--why", "a test", "--publisher", v.publisher); err != nil || lines[len(lines)-1]["replaced"] != 2.0 {
		t.Errorf("rebuild: got %v and %v, want both documents replaced", lines, err)
	}
	if got := v.sees("states", "anew")["last"]; got != int32(3) {
		t.Errorf("got the state %v, want that of the event", got)
	}
}

// A halted aggregate's document is mended as far as it is, and stays halted; its parked
// messages wait, and are applied to what is right.
func TestVerify_MendsAHaltedAggregateUpToItsHaltWhereThatIsWanted(t *testing.T) {
	v := newVerifying(t, "verify-halted")
	events := append(append(happens("h", 1), event("h", 2, "Failed", `{}`)), happens("h", 3)...)
	v.has("now", events...)
	send(t, v.topic, events...)
	until(t, "the aggregate is halted", func() bool {
		n, err := v.db.Collection("parked_messages").CountDocuments(t.Context(), bson.D{})
		return err == nil && n == 2
	})
	for _, damage := range []func(){
		func() { v.set("orders_v1", "h", "sum", 9) },
		func() { v.remove("orders_v1", "h") },
	} {
		damage()
		if lines, err := runCommand(t, "rebuild", "--aggregate", "h", "--why", "a test", "--publisher", v.publisher); err == nil || !strings.Contains(err.Error(), "halted") {
			t.Errorf("rebuild of a halted aggregate: got %v and %v, want it refused", lines, err)
		}
		if lines, err := runCommand(t, "rebuild", "--aggregate", "h", "--why", "a test", "--force", "--publisher", v.publisher); err != nil {
			t.Fatalf("rebuild: got %v and %v", lines, err)
		}
		document := v.sees("orders_v1", "h")
		if got := fmt.Sprint(document["events"], document["sum"]); got != "1 1" {
			t.Errorf("the document of the halted aggregate: got %s, want 1 1", got)
		}
		if got := fmt.Sprint(document["_relay"]); !strings.Contains(got, "is missing") {
			t.Errorf("the document does not say any more that its aggregate is halted: %s", got)
		}
	}
	if n, err := v.db.Collection("parked_messages").CountDocuments(t.Context(), bson.D{}); err != nil || n != 2 {
		t.Errorf("%d messages are parked, %v, want the 2 that were", n, err)
	}
	differences, _, err := v.found("--publisher", v.publisher, "--wait", "1ms")
	if err == nil {
		t.Error("verify: got no error")
	}
	wantDifferences(t, differences, map[string]string{"orders h": "behind", "states h": "behind"})
	// The event is given up: then the source has one that no document is to have.
	if lines, err := runCommand(t, "parked", "discard", "h", "h-2"); err != nil {
		t.Fatalf("discard: %v and %v", lines, err)
	}
	if lines, err := runCommand(t, "parked", "redrive", "h"); err != nil {
		t.Fatalf("redrive: %v and %v", lines, err)
	}
	v.awaitSequence("orders_v1", "h", 3)
	v.wantEqual("--wait", "1ms")
}

// What a run that died has left is removed by a later one, and nothing that another may
// work with.
func TestVerify_RemovesWhatADeadRunHasLeft(t *testing.T) {
	v := newVerifying(t, "verify-discarded")
	v.happen("a", 1)
	v.awaitSequence("states", "a", 1)
	old, young := time.Now().Add(-2*time.Hour), time.Now()
	_, err := v.db.Collection("recomputed_documents").InsertMany(t.Context(), []any{
		bson.D{{Key: "_id", Value: "dead/0/a"}, {Key: "_relay", Value: bson.D{{Key: "updatedAt", Value: old}}}},
		bson.D{{Key: "_id", Value: "other/0/a"}, {Key: "_relay", Value: bson.D{{Key: "updatedAt", Value: young}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if lines, err := runCommand(t, "verify", "--publisher", v.publisher); err != nil {
		t.Errorf("verify: got %v and %v", lines, err)
	}
	var left []struct {
		ID string `bson:"_id"`
	}
	cursor, err := v.db.Collection("recomputed_documents").Find(t.Context(), bson.D{})
	if err == nil {
		err = cursor.All(t.Context(), &left)
	}
	if err != nil || len(left) != 1 || left[0].ID != "other/0/a" {
		t.Errorf("left: got %v, %v, want what another run works with", left, err)
	}

	for what, args := range map[string][]string{
		"no source":           {"verify"},
		"two sources":         {"verify", "--publisher", "x", "--events", "y"},
		"a projection's name": {"verify", "--publisher", v.publisher, "--projection", "order"},
		"one with a key":      {"verify", "--publisher", v.publisher, "--projection", "totals"},
		"a key, rebuilt":      {"rebuild", "--aggregate", "a", "--projection", "totals", "--why", "x", "--publisher", v.publisher},
		"no reason":           {"rebuild", "--aggregate", "a", "--publisher", v.publisher},
		"no publisher":        {"rebuild", "--aggregate", "a", "--why", "x"},
	} {
		if _, err := runCommand(t, args...); !errors.Is(err, cli.ErrUsage) {
			t.Errorf("%s: got %v, want it to be wrong usage", what, err)
		}
	}
	if err := os.WriteFile(filepath.Join(v.dir, "cutshort"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := runCommand(t, "verify", "--publisher", v.publisher); err == nil || !strings.Contains(err.Error(), "some are missing") {
		t.Errorf("a publisher that ends early: got %v, want that something is missing", err)
	}
}

// What readers see is compared: a version that they do not see is none of it, nor is one
// that a rebuild has begun to change meanwhile.
func TestVerify_ComparesWhatReadersSee(t *testing.T) {
	v := newVerifying(t, "verify-seen")
	v.happen("a", 1)
	v.awaitSequence("states", "a", 1)
	var version projection.Version
	for _, p := range v.projections {
		if of, is := projection.VersionOf(p); is {
			version = of
		}
	}
	store := readmodel.New(v.db.Client(), readmodel.Config{Database: v.db.Name()})
	if err := store.SwitchView(t.Context(), version.Other(7)); err != nil {
		t.Fatal(err)
	}
	if last := v.wantEqual(); last["not_compared"].(map[string]any)["orders"] == nil {
		t.Errorf("the sum: got %v, want the version not compared that readers do not see", last)
	}
	if _, err := runCommand(t, "verify", "--publisher", v.publisher, "--projection", "orders"); !errors.Is(err, cli.ErrUsage) {
		t.Errorf("of that alone: got %v, want it refused", err)
	}
	if err := store.SwitchView(t.Context(), &version); err != nil {
		t.Fatal(err)
	}
	v.wantEqual()

	v.has("now", happens("a", 1, 2)...)
	done := make(chan error, 1)
	go func() {
		_, err := runCommand(t, "verify", "--publisher", v.publisher, "--wait", "5m")
		done <- err
	}()
	until(t, "it is looked at again", func() bool {
		asked, _ := os.ReadFile(filepath.Join(v.dir, "asked"))
		return strings.Contains(string(asked), "--aggregate=a")
	})
	if err := store.Revise(t.Context(), rebuild.Record{}, rebuild.Record{}.Begin(&version, 1, "", "somebody", "a test", time.Now())); err != nil {
		t.Fatal(err)
	}
	send(t, v.topic, happens("a", 2)...)
	if err := <-done; err == nil || !strings.Contains(err.Error(), "a rebuild has begun") {
		t.Errorf("while a rebuild began: got %v, want that it is to be run again", err)
	}
}

// The documents of one projection do not go beyond an event that another one cannot apply:
// once that halts the aggregate, its redrive would be refused for what is ahead.
func TestMend_GoesNotBeyondWhatAnotherProjectionCannotApply(t *testing.T) {
	v := newVerifying(t, "verify-beside")
	v.happen("a", 1, 2)
	v.awaitSequence("orders_v1", "a", 2)
	v.awaitSequence("states", "a", 2)
	v.set("orders_v1", "a", "sum", 99)
	v.has("now", append(happens("a", 1, 2), event("a", 3, "Failed", `{}`), happens("a", 4)[0])...)
	args := []string{"rebuild", "--aggregate", "a", "--projection", "orders", "--why", "a test", "--publisher", v.publisher}
	if lines, err := runCommand(t, args...); err == nil || !strings.Contains(err.Error(), `projection "states"`) {
		t.Errorf("got %v and %v, want it left for what the other one cannot apply", lines, err)
	}
	if got := v.sees("orders_v1", "a")["sum"]; got != int32(99) {
		t.Errorf("got the sum %v, want it left", got)
	}
	v.has("now", append(happens("a", 1, 2), event("a", 3, "Another", `{}`), happens("a", 4)[0])...)
	v.set("states", "a", "last", 99)
	if lines, err := runCommand(t, args...); err != nil || lines[len(lines)-1]["replaced"] != 1.0 {
		t.Errorf("once it can: got %v and %v, want the one document replaced", lines, err)
	}
	if got := v.sees("states", "a")["last"]; got != int32(99) {
		t.Errorf("got the other projection's %v, want it left as it was", got)
	}
}
