package app_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/app"
	"changerelay/services/projector/internal/command"
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/rebuild"
	"changerelay/services/projector/internal/settings"
)

// rebuilt is a versioned projection that adds up, of which a missing or doubled event
// shows, and one with a key.
const rebuilt = `projections:
  - name: orders
    version: 1
    collection: orders
    on: {Happened: {inc: {events: 1, sum: data.n}, push: {seen: data.n}}, Erased: {delete: true}}
  - name: totals
    version: 1
    collection: totals
    key: '"all"'
    on: {Happened: {inc: {events: 1}}}
`

// rebuildRecord is the key of the record of the rebuilds of orders.
const rebuildRecord = "$rebuild:orders:1:orders"

// keep runs projectors as the service does, one after another, until the test's end or
// until stop.
func keep(t *testing.T, cfg config.Config, projections projection.Projections) (stop func()) {
	t.Helper()
	out := &logs{}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- app.Keep(ctx, func(records rebuild.Records) (*app.App, error) {
			return app.With(ctx, cfg, projections, records, "test", out)
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("keep: %v", err)
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", cfg.InstanceID, out)
		}
	})
	t.Cleanup(stop)
	return stop
}

// rebuilding is a read database with a running projector, and a publisher's command
// line that does what the test says.
type rebuilding struct {
	db    *mongo.Database
	topic string
	// dir is where the publisher's command line keeps what it was asked, and from where it
	// says how far it is.
	dir, publisher string
	cfg            config.Config
	projections    projection.Projections
	stop           func()
}

func newRebuilding(t *testing.T, topic string) *rebuilding {
	t.Helper()
	client, database := servers.Mongo(t, nil)
	r := &rebuilding{db: client.Database(database), topic: topic, dir: t.TempDir(), cfg: configured(t, topic, database)}
	r.publisher = filepath.Join(r.dir, "publisher")
	r.script(t)
	onTopic(t, topic, database, rebuilt)
	r.projections = load(t, os.Getenv("PROJECTIONS"))
	if _, err := runCommand(t, "setup"); err != nil {
		t.Fatal(err)
	}
	r.stop = keep(t, r.cfg, r.projections)
	return r
}

// script writes the publisher's command line.
func (r *rebuilding) script(t *testing.T) {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\ncd %s\ncase $2 in\nstatus) echo >>looked; cat status 2>/dev/null || true;;\n"+
		"cancel) echo \"$@\" >>asked; rm -f status;;\n"+
		"*) echo \"$@\" >>asked; echo '{\"id\":\"r1\",\"state\":\"running\"}';;\nesac\n", r.dir)
	if err := os.WriteFile(r.publisher, []byte(script), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
}

// said tells whether the publisher's command line says how far a resend is.
func (r *rebuilding) said() bool {
	_, err := os.Stat(filepath.Join(r.dir, "status"))
	return err == nil
}

// says has the publisher's command line say how far the resend is.
func (r *rebuilding) says(t *testing.T, version int, state string) {
	t.Helper()
	r.write(t, r.status(t, "orders", version, state, 0))
}

// status is what the publisher's command line prints of a resend that the rebuild under way
// has asked for.
func (r *rebuilding) status(t *testing.T, projection string, version int, state string, failed int) string {
	t.Helper()
	records, err := readmodel.New(r.db.Client(), readmodel.Config{Database: r.db.Name()}).Rebuilds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(records, func(record rebuild.Record) bool { return record.Projection == projection })
	if at < 0 {
		t.Fatalf("projection %q was never rebuilt", projection)
	}
	return fmt.Sprintf(`{"id":"r1","state":%q,"group":"/%s_v%d","why":%q,"sent":5,"failed":%d}`+"\n", state, projection, version, records[at].Purpose(), failed)
}

// write has the publisher's command line print resends, the last one first, with the numbers
// that they have where none is lost.
func (r *rebuilding) write(t *testing.T, status string) {
	t.Helper()
	var numbered strings.Builder
	for left := strings.Count(status, "\n"); left > 0; left-- {
		line, rest, _ := strings.Cut(status, "\n")
		fmt.Fprintf(&numbered, `{"number":%d,%s`+"\n", left, line[1:])
		status = rest
	}
	r.prints(t, numbered.String())
}

// prints has the publisher's command line print lines of resends.
func (r *rebuilding) prints(t *testing.T, lines string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, "new"), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(r.dir, "new"), filepath.Join(r.dir, "status")); err != nil {
		t.Fatal(err)
	}
}

// looked is how often the publisher's command line was asked how far it is.
func (r *rebuilding) looked() int {
	text, _ := os.ReadFile(filepath.Join(r.dir, "looked"))
	return len(text)
}

// asked is what the publisher's command line was asked for.
func (r *rebuilding) asked() string {
	text, _ := os.ReadFile(filepath.Join(r.dir, "asked"))
	return string(text)
}

// outcome is what became of a command that runs beside the test.
type outcome struct {
	lines []map[string]any
	err   error
}

// begin runs the command beside the test.
func (r *rebuilding) begin(t *testing.T, more ...string) <-chan outcome {
	t.Helper()
	done := make(chan outcome, 1)
	go func() {
		lines, err := runCommand(t, append([]string{"rebuild", "--projection", "orders", "--why", "a test", "--publisher", r.publisher}, more...)...)
		done <- outcome{lines, err}
	}()
	return done
}

// happens are events of an aggregate.
func happens(aggregate string, versions ...int64) []contract.Event {
	var events []contract.Event
	for _, n := range versions {
		events = append(events, event(aggregate, n, "Happened", fmt.Sprintf(`{"n":%d}`, n)))
	}
	return events
}

// again are events resent for a version.
func again(version int, events []contract.Event) []contract.Event {
	for i := range events {
		events[i].Resend = contract.Resend{ID: "r1", Group: fmt.Sprintf("/orders_v%d", version)}
	}
	return events
}

// sees is what readers see of an aggregate.
func (r *rebuilding) sees(t *testing.T, name, id string) string {
	t.Helper()
	var document bson.M
	err := r.db.Collection(name).FindOne(t.Context(), bson.D{{Key: "_id", Value: id}}).Decode(&document)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(document["events"], document["sum"], document["seen"])
}

func (r *rebuilding) awaitSees(t *testing.T, name, id, want string) {
	t.Helper()
	until(t, fmt.Sprintf("%q of %q is %s", id, name, want), func() bool { return r.sees(t, name, id) == want })
}

func (r *rebuilding) collections(t *testing.T) string {
	t.Helper()
	names, err := r.db.ListCollectionNames(t.Context(), bson.D{{Key: "name", Value: bson.D{{Key: "$regex", Value: "^orders_v"}}}})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

// Documents that were altered and lost are built anew while events flow: readers see
// the old ones until all are there, and live events that are ahead of what is resent
// are not taken before it.
func TestRebuild_ReadersSeeOldOrNewWhileEventsFlow(t *testing.T) {
	r := newRebuilding(t, "rebuild")
	send(t, r.topic, happens("a", 1, 2, 3)...)
	send(t, r.topic, happens("b", 1, 2)...)
	r.awaitSees(t, "orders", "a", "3 6 [1 2 3]")
	r.awaitSees(t, "orders", "b", "2 3 [1 2]")
	if _, err := r.db.Collection("orders_v1").UpdateByID(t.Context(), "a", bson.D{{Key: "$set", Value: bson.D{{Key: "sum", Value: 99}}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.db.Collection("orders_v1").DeleteOne(t.Context(), bson.D{{Key: "_id", Value: "b"}}); err != nil {
		t.Fatal(err)
	}

	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	if got := r.asked(); !strings.HasPrefix(got, "resend --all --group /orders_v2 --rate 500 --why rebuild of projection orders, begun at ") || !strings.HasSuffix(got, "Z: a test --json\n") {
		t.Errorf("asked: got %q", got)
	}
	r.says(t, 2, "running")
	// Ahead of what is resent of a, between two resent ones of it, and of what was lost.
	send(t, r.topic, happens("a", 4)...)
	send(t, r.topic, again(2, happens("a", 1, 2))...)
	send(t, r.topic, happens("a", 5)...)
	send(t, r.topic, happens("b", 3)...)
	send(t, r.topic, happens("new", 1, 2)...)
	r.awaitSees(t, "orders", "a", "5 108 [1 2 3 4 5]")
	r.awaitSees(t, "orders", "new", "2 3 [1 2]")
	r.awaitSees(t, "orders_v2", "a", "2 3 [1 2]")
	r.awaitSees(t, "orders_v2", "new", "2 3 [1 2]")
	if got := r.sees(t, "orders_v2", "b"); !strings.Contains(got, "no documents") {
		t.Errorf("b in the new version, of which an event came that is ahead: got %s, want nothing", got)
	}
	send(t, r.topic, again(2, happens("a", 3, 4, 5))...)
	send(t, r.topic, again(2, happens("b", 1, 2, 3))...)
	r.awaitSees(t, "orders_v2", "b", "3 6 [1 2 3]")
	if got := r.sees(t, "orders", "b"); got != "1 3 [3]" {
		t.Errorf("readers see %s of b before the switch, want what they saw: 1 3 [3]", got)
	}
	send(t, r.topic, happens("a", 6)...)
	r.says(t, 2, "done")
	if o := <-done; o.err != nil {
		t.Fatalf("rebuild: got %v after %v", o.err, o.lines)
	}
	for id, want := range map[string]string{"a": "6 21 [1 2 3 4 5 6]", "b": "3 6 [1 2 3]", "new": "2 3 [1 2]"} {
		if got := r.sees(t, "orders", id); got != want {
			t.Errorf("%s afterwards: got %s, want %s", id, got, want)
		}
	}
	if got := r.collections(t); got != "orders_v2" {
		t.Errorf("collections afterwards: got %s, want orders_v2 alone", got)
	}
	// The projectors of the same file go on with it, also after a restart.
	send(t, r.topic, happens("a", 7)...)
	r.awaitSees(t, "orders", "a", "7 28 [1 2 3 4 5 6 7]")
	r.stop()
	keep(t, r.cfg, r.projections)
	send(t, r.topic, happens("b", 4)...)
	r.awaitSees(t, "orders", "b", "4 10 [1 2 3 4]")
	if got := r.sees(t, "totals", "all"); !strings.HasPrefix(got, "13 ") {
		t.Errorf("the other projection: got %s, want each event once", got)
	}
}

// ends waits for a command that runs beside the test.
func ends(t *testing.T, done <-chan outcome) (o outcome) {
	t.Helper()
	until(t, "the command ends", func() bool {
		select {
		case o = <-done:
			return true
		default:
			return false
		}
	})
	return o
}

// stopsFor checks that a command has ended unfinished, and why.
func stopsFor(t *testing.T, o outcome, reason string) {
	t.Helper()
	if o.err == nil || len(o.lines) == 0 || !strings.Contains(fmt.Sprint(o.lines[len(o.lines)-1]["refused"]), reason) {
		t.Errorf("got %v after %v, want it unfinished: %s", o.err, o.lines, reason)
	}
}

// compared checks that a command has found the new version behind, before it has it
// follow the old one, and names the aggregate that it lacks.
func compared(t *testing.T, o outcome, lacking string) {
	t.Helper()
	stopsFor(t, o, fmt.Sprintf("what version 1 had of 1 aggregates: %q", lacking))
	if last := o.lines[len(o.lines)-1]; last["step"] != "compare" {
		t.Errorf("got the step %v, want compare", last["step"])
	}
}

// A rebuild is refused, or not brought to its end, as long as something speaks against
// it; and it goes on where it was.
func TestRebuild_IsSwitchedToOnceNothingSpeaksAgainstIt(t *testing.T) {
	r := newRebuilding(t, "rebuild-refused")
	send(t, r.topic, happens("a", 1, 2)...)
	send(t, r.topic, happens("b", 1)...)
	r.awaitSees(t, "orders", "a", "2 3 [1 2]")
	r.awaitSees(t, "orders", "b", "1 1 [1]")
	if lines, err := runCommand(t, "rebuild", "--projection", "orders", "--dry-run"); err != nil || len(lines) != 1 || lines[0]["refused"] != nil ||
		lines[0]["to"] != 2.0 || lines[0]["command"] != nil || !strings.Contains(fmt.Sprint(lines[0]["waiting_for"]), "resend everything for /orders_v2") {
		t.Errorf("dry run: got %v and %v, want what it would do", lines, err)
	}
	old, err := r.db.Collection("projector_processes").InsertOne(t.Context(), bson.D{{Key: "_id", Value: "old"}, {Key: "instance", Value: "of an earlier release"}, {Key: "heartbeatAt", Value: time.Now()}, {Key: "diedAt", Value: time.Now()}})
	if err != nil {
		t.Fatal(err)
	}
	stopsFor(t, ends(t, r.begin(t)), "of an earlier release")
	if _, err := r.db.Collection("projector_processes").DeleteOne(t.Context(), bson.D{{Key: "_id", Value: old.InsertedID}}); err != nil {
		t.Fatal(err)
	}
	if got := r.collections(t); got != "orders_v1" {
		t.Errorf("collections after a rebuild that was refused: got %s", got)
	}

	if lines, err := runCommand(t, "rebuild", "--projection", "orders", "--why", "a test"); err == nil || !strings.Contains(fmt.Sprint(lines), "publisher resend --all --group /orders_v2 ") {
		t.Errorf("without the publisher's command line: got %v and %v, want the command for it", lines, err)
	}
	r.write(t, r.status(t, "orders", 2, "done", 1))
	send(t, r.topic, again(2, happens("a", 1, 2))...)
	r.awaitSees(t, "orders_v2", "a", "2 3 [1 2]")
	stopsFor(t, ends(t, r.begin(t)), "1 events could not be resent")
	r.says(t, 2, "incomplete")
	stopsFor(t, ends(t, r.begin(t)), "has ended without all that was selected")
	r.says(t, 2, "done")
	compared(t, ends(t, r.begin(t, "--wait", "1ms")), "b")
	// A projector that knows nothing of the new version completes an event.
	store := readmodel.New(r.db.Client(), readmodel.Config{Database: r.db.Name()})
	applied(t, store, 1, "a", 3, "Happened")
	send(t, r.topic, happens("a", 4)...)
	send(t, r.topic, again(2, happens("b", 1))...)
	r.awaitSees(t, "orders_v2", "b", "1 1 [1]")
	until(t, "the event is applied", func() bool { return strings.HasPrefix(r.sees(t, "orders", "a"), "4 ") })
	compared(t, ends(t, r.begin(t, "--wait", "1ms")), "a")
	if got := r.sees(t, "orders_v2", "a"); got != "2 3 [1 2]" {
		t.Errorf("a in the new version, which lacks an event: got %s, want no later one over it", got)
	}
	send(t, r.topic, again(2, happens("a", 3, 4))...)
	r.awaitSees(t, "orders_v2", "a", "4 10 [1 2 3 4]")
	done := r.begin(t, "--grace", "1h")
	r.awaitSees(t, "orders", "a", "4 10 [1 2 3 4]")

	// Within the grace the old documents go on, and there is a way back.
	send(t, r.topic, happens("b", 2, 4)...)
	r.awaitSees(t, "orders", "b", "3 7 [1 2 4]")
	r.awaitSees(t, "orders_v1", "b", "3 7 [1 2 4]")
	if lines, err := runCommand(t, "rebuild", "--projection", "orders", "--cancel", "--publisher", r.publisher); err != nil || lines[len(lines)-1]["step"] != "done" {
		t.Errorf("cancel: got %v and %v", lines, err)
	}
	if got := r.collections(t) + " " + r.sees(t, "orders", "b"); got != "orders_v1 3 7 [1 2 4]" {
		t.Errorf("after it was cancelled: got %s, want the old documents", got)
	}
	if o := ends(t, done); o.err == nil || !strings.Contains(o.err.Error(), "changed at the same time") {
		t.Errorf("the command that waited for the end of the grace: got %v", o.err)
	}
	if strings.Contains(r.asked(), "resend --all") {
		t.Errorf("asked: got %s, want nothing, since the publisher has resent all", r.asked())
	}
}

// Numbers of versions come again once a read database is lost, and somebody may have resent
// a few aggregates for such a number: neither is what this rebuild has asked for.
func TestRebuild_TakesNoOtherResendForItsOwn(t *testing.T) {
	r := newRebuilding(t, "rebuild-own")
	send(t, r.topic, happens("a", 1, 2)...)
	r.awaitSees(t, "orders", "a", "2 3 [1 2]")
	const last = `{"id":"r0","state":"done","group":"/orders_v2","why":"rebuild of projection orders, begun at 2025-01-01T00:00:00.000Z: a test","ended_at":"2025-01-01T00:01:00Z","sent":1,"failed":0}` + "\n"
	r.write(t, last)
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	own := r.status(t, "orders", 2, "cancelled", 0)
	const few = `{"id":"r2","state":"done","group":"/orders_v2","why":"another","selection":{"aggregates":["a"]},"sent":2,"failed":0}` + "\n"
	r.write(t, few+own+last)
	stopsFor(t, ends(t, done), "the resend was cancelled")
	r.write(t, few+strings.Replace(own, "cancelled", "incomplete", 1)+last)
	stopsFor(t, ends(t, r.begin(t)), "has ended without all that was selected")
	// Everything counts, whoever asks for it, where it is asked for after the rebuild began.
	const all = `{"id":"r3","state":"done","group":"/orders_v2","why":"by hand","sent":2,"failed":0}` + "\n"
	r.write(t, all+few+own+strings.Replace(last, `"failed":0`, `"failed":1`, 1))
	send(t, r.topic, again(2, happens("a", 1, 2))...)
	if o := ends(t, r.begin(t, "--grace", "0s")); o.err != nil {
		t.Errorf("once all is resent: got %v after %v", o.err, o.lines)
	}
	r.awaitSees(t, "orders", "a", "2 3 [1 2]")
}

// Nothing carries out a resend whose command was killed while it began it: that is cancelled,
// and asked for again. One that is only just beginning is waited for.
func TestRebuild_AsksAgainWhereTheCommandThatBeganTheResendIsGone(t *testing.T) {
	r := newRebuilding(t, "rebuild-beginning")
	send(t, r.topic, happens("a", 1, 2)...)
	r.awaitSees(t, "orders", "a", "2 3 [1 2]")
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	beginning := func(at time.Time) {
		began := fmt.Sprintf(`"state":"beginning","began_at":%q`, at.UTC().Format(time.RFC3339Nano))
		r.write(t, strings.Replace(r.status(t, "orders", 2, "beginning", 0), `"state":"beginning"`, began, 1))
	}
	beginning(time.Now().Add(time.Hour)) // however long this test takes
	asked, looked := "", r.looked()
	until(t, "it has seen what is beginning", func() bool { return r.looked() > looked+1 })
	asked, looked = r.asked(), r.looked()
	until(t, "it looks again", func() bool { return r.looked() > looked+1 })
	if r.asked() != asked {
		t.Errorf("while the resend begins: asked %s, want nothing more than %s", r.asked(), asked)
	}
	beginning(time.Now().Add(-time.Hour))
	until(t, "it is cancelled, and asked for again", func() bool {
		_, again, cancelled := strings.Cut(r.asked(), "resend cancel --why ")
		return cancelled && strings.Contains(again, "resend --all --group /orders_v2 ")
	})
	send(t, r.topic, again(2, happens("a", 1, 2))...)
	r.says(t, 2, "done")
	if o := ends(t, done); o.err != nil {
		t.Errorf("once all is resent: got %v after %v", o.err, o.lines)
	}
}

// A resend may take days, over which the publisher's command line fails now and then. That
// is no end of the rebuild, and nothing that asks for another resend.
func TestRebuild_OutlastsAPublisherThatDoesNotAnswer(t *testing.T) {
	r := newRebuilding(t, "rebuild-answers")
	send(t, r.topic, happens("a", 1, 2)...)
	r.awaitSees(t, "orders", "a", "2 3 [1 2]")
	said := &logs{}
	done := make(chan error, 1)
	go func() {
		_, err := command.Program("test").Do(t.Context(), r.args("--grace", "0s"), said, said)
		done <- err
	}()
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	r.says(t, 2, "running")
	until(t, "the resend is followed", func() bool { return strings.Contains(said.String(), `"sent":5`) })
	working, err := os.ReadFile(r.publisher)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(r.publisher); err != nil {
		t.Fatal(err)
	}
	until(t, "it says so", func() bool { return strings.Contains(said.String(), "the publisher's command line: ") })
	send(t, r.topic, again(2, happens("a", 1, 2))...)
	r.says(t, 2, "done")
	if err := os.WriteFile(r.publisher, working, 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("got %v after %s", err, said.String())
	}
	if asked := strings.Count(r.asked(), "resend --all"); asked != 1 {
		t.Errorf("the publisher was asked %d times, want once", asked)
	}
	if _, err := runCommand(t, "rebuild", "--projection", "totals", "--why", "a test", "--publisher", "/nowhere/publisher"); err == nil || !strings.Contains(err.Error(), "/nowhere/publisher") {
		t.Errorf("one that never answers: got %v, want an end that names it", err)
	}
}

// What the new version cannot apply waits, and with it the aggregate; nothing of it is
// parked, where it would stand for a live event. Once the version is given up, what was
// resent for it is nobody's.
func TestRebuild_GivenUpLeavesNothing(t *testing.T) {
	r := newRebuilding(t, "rebuild-cancel")
	send(t, r.topic, happens("a", 1, 2)...)
	r.awaitSees(t, "orders", "a", "2 3 [1 2]")
	done := r.begin(t)
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	bad := event("bad", 1, "Happened", `{"n":"x"}`)
	send(t, r.topic, again(2, []contract.Event{bad})...)
	send(t, r.topic, happens("bad", 2)...)
	send(t, r.topic, again(2, happens("a", 1, 2))...)
	r.awaitSees(t, "orders_v2", "a", "2 3 [1 2]")
	r.says(t, 2, "done")
	lines, err := runCommand(t, "rebuild", "--projection", "orders", "--cancel")
	if err != nil || len(lines) < 2 || lines[len(lines)-1]["step"] != "done" {
		t.Fatalf("cancel: got %v and %v", lines, err)
	}
	// Nobody has asked the publisher, so the resend may go on for nothing.
	said := lines[len(lines)-2]
	if !strings.Contains(fmt.Sprint(said["goes_on"]), "the resend for /orders_v2") || said["command"] != "publisher resend cancel --why 'the rebuild of projection orders is cancelled'" {
		t.Errorf("cancel, without the publisher's command line: got %v, want it to say what goes on, and what ends that", said)
	}
	if o := ends(t, done); o.err == nil {
		t.Errorf("the rebuild came to its end: %v", o.lines)
	}
	if got := r.collections(t) + " " + r.sees(t, "orders", "a"); got != "orders_v1 2 3 [1 2]" {
		t.Errorf("after it was cancelled: got %s, want the old documents", got)
	}
	r.awaitSees(t, "orders", "bad", "1 2 [2]")
	r.nothingHalted(t)
	// The next one has another number.
	lines, err = runCommand(t, "rebuild", "--projection", "orders", "--dry-run")
	if err != nil || len(lines) != 1 || lines[0]["to"] != 3.0 {
		t.Errorf("the next one: got %v and %v, want version 3", lines, err)
	}
}

func (r *rebuilding) nothingHalted(t *testing.T) {
	t.Helper()
	for _, name := range []string{"halted_aggregates", "parked_messages"} {
		if n, err := r.db.Collection(name).CountDocuments(t.Context(), bson.D{}); err != nil || n != 0 {
			t.Errorf("%s: got %d and %v, want none", name, n, err)
		}
	}
}

// What is resent of an aggregate that is halted meanwhile waits for the redrive, and is in
// no live event's way.
func TestRebuild_OfAHaltedAggregateWaits(t *testing.T) {
	r := newRebuilding(t, "rebuild-halted")
	send(t, r.topic, happens("h", 1)...)
	r.awaitSees(t, "orders", "h", "1 1 [1]")
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	refused := event("h", 2, "Happened", `{"n":"x"}`)
	send(t, r.topic, refused)
	send(t, r.topic, again(2, []contract.Event{happens("h", 1)[0], refused, happens("h", 3)[0]})...)
	send(t, r.topic, happens("h", 3)...)
	until(t, "the aggregate is halted", func() bool {
		n, err := r.db.Collection("parked_messages").EstimatedDocumentCount(t.Context())
		return err == nil && n == 1
	})
	for _, args := range [][]string{{"parked", "discard", "h", "--all"}, {"parked", "redrive", "h"}} {
		if lines, err := runCommand(t, args...); err != nil {
			t.Fatalf("%v: got %v and %v", args, lines, err)
		}
	}
	r.awaitSees(t, "orders", "h", "2 4 [1 3]")
	r.awaitSees(t, "orders_v2", "h", "2 4 [1 3]")
	r.nothingHalted(t)
	r.says(t, 2, "done")
	if o := ends(t, done); o.err != nil {
		t.Errorf("rebuild: got %v after %v", o.err, o.lines)
	}
}

// What was parked during a rebuild is redriven after the rebuild was given up: the version
// that followed it then is nobody's.
func TestRebuild_GivenUpHoldsUpNoRedrive(t *testing.T) {
	r := newRebuilding(t, "rebuild-parked")
	send(t, r.topic, happens("h", 1)...)
	r.awaitSees(t, "orders", "h", "1 1 [1]")
	done := r.begin(t)
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	send(t, r.topic, event("h", 2, "Happened", `{"n":"x"}`))
	send(t, r.topic, happens("h", 3)...)
	until(t, "both events are parked", func() bool {
		n, err := r.db.Collection("parked_messages").EstimatedDocumentCount(t.Context())
		return err == nil && n == 2
	})
	if lines, err := runCommand(t, "rebuild", "--projection", "orders", "--cancel"); err != nil {
		t.Fatalf("cancel: got %v and %v", lines, err)
	}
	ends(t, done)
	if lines, err := runCommand(t, "parked", "discard", "h", "h-2"); err != nil {
		t.Fatalf("discard: got %v and %v", lines, err)
	}
	lines, err := runCommand(t, "parked", "redrive", "h")
	if err != nil || lines[0]["applied"] != 1.0 {
		t.Errorf("redrive: got %v and %v, want the third event applied", lines, err)
	}
	if got := r.sees(t, "orders", "h"); got != "2 4 [1 3]" {
		t.Errorf("readers see %s, want the first and the third event", got)
	}
	r.nothingHalted(t)
}

// A projection with a key, whose documents were counted wrong, is built anew, too.
func TestRebuild_OfDocumentsOfAnotherKey(t *testing.T) {
	r := newRebuilding(t, "rebuild-keyed")
	send(t, r.topic, happens("a", 1, 2)...)
	send(t, r.topic, happens("b", 1)...)
	until(t, "all are counted", func() bool { return strings.HasPrefix(r.sees(t, "totals", "all"), "3 ") })
	if _, err := r.db.Collection("totals_v1").UpdateByID(t.Context(), "all", bson.D{{Key: "$set", Value: bson.D{{Key: "events", Value: 70}}}}); err != nil {
		t.Fatal(err)
	}
	done := r.begin(t, "--projection", "totals", "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return strings.Contains(r.asked(), "/totals_v2") })
	send(t, r.topic, happens("a", 3)...)
	totals := func(events []contract.Event) []contract.Event {
		for i := range events {
			events[i].Resend = contract.Resend{ID: "r2", Group: "/totals_v2"}
		}
		return events
	}
	send(t, r.topic, totals(happens("a", 1, 2, 3))...)
	send(t, r.topic, totals(happens("b", 1))...)
	r.write(t, r.status(t, "totals", 2, "done", 0))
	if o := ends(t, done); o.err != nil {
		t.Fatalf("rebuild: got %v after %v", o.err, o.lines)
	}
	if got := r.sees(t, "totals", "all"); !strings.HasPrefix(got, "4 ") {
		t.Errorf("afterwards: got %s, want 4", got)
	}
	send(t, r.topic, happens("b", 2)...)
	until(t, "the next one is counted", func() bool { return strings.HasPrefix(r.sees(t, "totals", "all"), "5 ") })
}

// Nobody else may declare the number that a rebuild has given to a version.
func TestRebuild_ItsNumberIsNotDeclared(t *testing.T) {
	r := newRebuilding(t, "rebuild-taken")
	send(t, r.topic, happens("a", 1)...)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	send(t, r.topic, again(2, happens("a", 1))...)
	r.says(t, 2, "done")
	if o := ends(t, done); o.err != nil {
		t.Fatalf("rebuild: got %v after %v", o.err, o.lines)
	}
	// A command that died has left documents to be dropped: the next one does that, and
	// begins nothing.
	if _, err := r.db.Collection("orders_v1").InsertOne(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.db.Collection("collection_owners").UpdateByID(t.Context(), rebuildRecord, bson.D{{Key: "$push", Value: bson.D{{Key: "retired", Value: 1}}}}); err != nil {
		t.Fatal(err)
	}
	if o := ends(t, r.begin(t)); o.err != nil || r.collections(t) != "orders_v2" {
		t.Errorf("the next command: got %v after %v, and the collections %s", o.err, o.lines, r.collections(t))
	}
	r.stop()
	taken := load(t, file(t, "second.yaml", strings.Replace(rebuilt, "version: 1", "version: 2", 1)))
	p, err := app.New(t.Context(), r.cfg, taken, "test", &logs{})
	if err == nil {
		err = p.Run(t.Context())
	}
	if !errors.Is(err, rebuild.ErrTaken) {
		t.Errorf("start with the number of a rebuild: got %v, want it refused", err)
	}
}

// What a cancelled one has left is no end of the next.
func TestRebuild_AfterOneThatWasCancelledItBegins(t *testing.T) {
	r := newRebuilding(t, "rebuild-again")
	send(t, r.topic, happens("a", 1)...)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	done := r.begin(t)
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	r.cancels(t)
	ends(t, done)
	if _, err := r.db.Collection("orders_v2").InsertOne(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	r.change(t, bson.D{{Key: "$push", Value: bson.D{{Key: "retired", Value: 2}}}})
	done = r.begin(t)
	until(t, "the publisher is asked again", func() bool { return strings.Contains(r.asked(), "/orders_v3 ") })
	if got := r.collections(t); strings.Contains(got, "orders_v2") {
		t.Errorf("what was cancelled is still there: %s", got)
	}
	r.cancels(t)
	ends(t, done)
}

// It is not switched to while what was resent waits in the subscription, also of
// documents of which the old ones know nothing.
func TestRebuild_WaitsForWhatHasNotArrived(t *testing.T) {
	r := newRebuilding(t, "rebuild-arriving")
	send(t, r.topic, happens("a", 1)...)
	send(t, r.topic, happens("b", 1)...)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	r.awaitSees(t, "orders", "b", "1 1 [1]")
	if _, err := r.db.Collection("orders_v1").DeleteOne(t.Context(), bson.D{{Key: "_id", Value: "b"}}); err != nil {
		t.Fatal(err)
	}
	said, done := &logs{}, make(chan error, 1)
	go func() {
		_, err := command.Program("test").Do(t.Context(), []string{"rebuild", "--projection", "orders", "--why", "a test", "--grace", "0s", "--publisher", r.publisher}, said, said)
		done <- err
	}()
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	// Nobody else gets the session while it is held.
	var held *azservicebus.SessionReceiver
	until(t, "the session of b is held", func() (is bool) {
		var err error
		held, err = servers.Client(t).AcceptSessionForSubscription(t.Context(), r.topic, "projector", "b", nil)
		return err == nil
	})
	send(t, r.topic, again(2, happens("b", 1))...)
	send(t, r.topic, again(2, happens("a", 1))...)
	r.awaitSees(t, "orders_v2", "a", "1 1 [1]")
	r.says(t, 2, "done")
	until(t, "the command goes on", func() bool {
		if err := held.RenewSessionLock(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(said.String(), `"arriving"`) || strings.Contains(said.String(), `"following"`)
	})
	if strings.Contains(said.String(), `"following"`) {
		t.Errorf("the command goes on although something has not arrived: %s", said)
	}
	if err := held.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatalf("rebuild: %v: %s", err, said)
	}
	if got := r.sees(t, "orders", "b"); got != "1 1 [1]" {
		t.Errorf("b afterwards: got %s, want it back", got)
	}
}

// A projector that starts while a rebuild begins is either seen by the command to work by
// other records, or has seen the record itself, before it takes its first session.
func TestRebuild_AProjectorThatStartsMeanwhileKnowsOfIt(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	store := readmodel.New(client, readmodel.Config{Database: database})
	cfg := configured(t, "rebuild-late", database)
	projections := load(t, file(t, "projections.yaml", rebuilt))
	v, _ := projection.VersionOf(projections[0])
	// The record comes just before the projector says for the first time that it lives.
	k := &killer{texts: [][]byte{[]byte("projector_processes"), []byte("beatBefore")}, nth: 1, lives: true}
	k.kill = func() {
		if err := store.Revise(t.Context(), rebuild.Record{}, rebuild.Record{}.Begin(&v, 1, "", "somebody", "a test", time.Now())); err != nil {
			t.Error(err)
		}
	}
	to, err := url.Parse(servers.MongoURI)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MongoURI = settings.Secret("mongodb://" + k.listen(t, to.Host) + "/?directConnection=true")
	out := &logs{}
	p, err := app.New(t.Context(), cfg, projections, "test", out)
	if err != nil {
		t.Fatal(err)
	}
	err = p.Run(t.Context())
	if _, changed := errors.AsType[*app.ChangedError](err); !changed || strings.Contains(out.String(), "taking sessions") {
		t.Errorf("got %v after %s, want it to begin anew before it takes a session", err, out)
	}
}
