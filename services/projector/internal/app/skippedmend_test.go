package app_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"changerelay/pkg/contract"
)

// skippable are projections that fail for an event without a field, one of them with a key.
const skippable = `projections:
  - name: orders
    version: 1
    collection: orders
    onError: skip
    on: {Happened: {inc: {events: 1, sum: data.n}}, Failed: {inc: {events: 1, sum: data.gone}}}
  - name: states
    collection: states
    on: {Happened: {set: {last: data.n}}, Failed: {set: {last: '0'}}}
  - name: totals
    collection: totals
    key: '"all"'
    onError: skip
    on: {Happened: {inc: {events: 1}}, Failed: {inc: {events: data.gone}}}
`

// rolledOut has projectors with other projections, and commands as well.
func (v *verifying) rolledOut(projections string) {
	v.t.Helper()
	v.stop()
	onTopic(v.t, v.topic, v.db.Name(), projections)
	v.cfg.Projections = os.Getenv("PROJECTIONS")
	v.projections = load(v.t, v.cfg.Projections)
	v.stop = keep(v.t, v.cfg, v.projections)
}

// A document that lacks a skipped event differs from the source, and verify says why,
// before and after the projection is mended. The rebuild of the aggregate that the record
// names mends it and takes the record away; the one of another projection stays.
func TestSkipped_VerifyNamesThemAndTheRebuildMendsThem(t *testing.T) {
	v := newVerifying(t, "skip-verify")
	v.rolledOut(skippable)
	failed := event("a", 2, "Failed", `{"n":2}`)
	events := []contract.Event{happens("a", 1)[0], failed, happens("a", 3)[0]}
	v.has("now", events...)
	send(t, v.topic, events...)
	v.awaitSequence("orders_v1", "a", 3)
	v.awaitSequence("states", "a", 3)
	reason := func(want string) {
		t.Helper()
		lines, err := runCommand(t, "verify", "--publisher", v.publisher)
		if err == nil || len(lines) != 2 || lines[0]["projection"] != "orders" || lines[0]["difference"] != want || !strings.Contains(fmt.Sprint(lines[0]["reason"]), `1 events were skipped, ["a-2"] among them: see projector skipped list`) {
			t.Errorf("verify: got %v and %v, want the document %s, and the skipped event named", lines, err, want)
		}
	}
	reason("failed")
	v.rolledOut(strings.ReplaceAll(skippable, "data.gone", "data.n"))
	reason("altered")
	records, lines := skippedOnes(t, "a")
	if !slices.Equal(records, []string{"orders_v1 a-2 evaluate skip", "totals a-2 evaluate skip"}) {
		t.Fatalf("records: got %q, want one of each that has skipped it", records)
	}
	mend := strings.Fields(strings.TrimPrefix(fmt.Sprint(lines[0]["repair"]), "projector "))
	args := slices.Concat(mend[:slices.Index(mend, "--why")], []string{"--why", "a test", "--publisher", v.publisher})
	lines, err := runCommand(t, args...)
	if last := lines[len(lines)-1]; err != nil || last["replaced"] != 1.0 || last["skipped_mended"] != 1.0 {
		t.Errorf("%q: got %v and %v, want one document replaced and one record gone", args, lines, err)
	}
	if document := v.sees("orders_v1", "a"); fmt.Sprint(document["events"], document["sum"]) != "3 6" {
		t.Errorf("the document is %v, want all events in it", document)
	}
	v.wantEqual()
	if records, _ := skippedOnes(t, "a"); !slices.Equal(records, []string{"totals a-2 evaluate skip"}) {
		t.Errorf("records: got %q, want the one of the other projection", records)
	}
}
