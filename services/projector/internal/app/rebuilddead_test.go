package app_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// lettering is a projection that dead-letters an event without a field.
const lettering = `projections:
  - name: orders
    version: 1
    collection: orders
    onError: deadletter
    on: {Happened: {inc: {events: 1, sum: data.n}, push: {seen: data.n}}, Failed: {inc: {events: 1, sum: data.gone}, push: {seen: data.n}}}
`

// What a projection has dead-lettered, and nothing can put back any more, is no reason
// against a rebuild, which is the way back. The new version goes over what it cannot apply
// either, with a record, so that it comes as far as the old one and live events go on.
func TestRebuild_IsTheWayBackFromWhatWasDeadLettered(t *testing.T) {
	r := newRebuilding(t, "rebuild-dead")
	r.stop()
	onTopic(t, r.topic, r.db.Name(), lettering)
	r.cfg.Projections = os.Getenv("PROJECTIONS")
	r.projections = load(t, r.cfg.Projections)
	r.stop = keep(t, r.cfg, r.projections)
	mended := event("a", 2, "Failed", `{"n":2}`)
	send(t, r.topic, happens("a", 1)[0], mended, happens("a", 3)[0])
	r.awaitSees(t, "orders", "a", "2 4 [1 3]")
	if _, err := runCommand(t, "dlq", "redrive", "--all"); err == nil {
		t.Error("the event was put back, want it refused")
	}

	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	mended.Data = []byte(`{"n":2,"gone":2}`) // as the corrected projection has it
	lasting := event("b", 2, "Failed", `{"n":2}`)
	send(t, r.topic, again(2, append(happens("a", 1), mended, happens("a", 3)[0]))...)
	send(t, r.topic, again(2, append(happens("b", 1), lasting))...)
	send(t, r.topic, happens("b", 1)[0], lasting)
	r.awaitSees(t, "orders_v2", "a", "3 6 [1 2 3]")
	r.awaitSees(t, "orders_v2", "b", "1 1 [1]")
	until(t, "the new version has its record", func() bool {
		records, _ := skippedOnes(t, "b")
		return slices.Contains(records, "orders_v2 b-2 evaluate skip")
	})
	send(t, r.topic, happens("b", 3)...)
	r.awaitSees(t, "orders_v2", "b", "2 4 [1 3]")
	r.says(t, 2, "done")
	if o := ends(t, done); o.err != nil {
		t.Fatalf("rebuild: got %v after %v", o.err, o.lines)
	}
	for id, want := range map[string]string{"a": "3 6 [1 2 3]", "b": "2 4 [1 3]"} {
		if got := r.sees(t, "orders", id); got != want {
			t.Errorf("readers see %s of %s, want %s", got, id, want)
		}
	}
	if records, _ := skippedOnes(t); fmt.Sprint(records) != "[orders_v2 b-2 evaluate skip]" {
		t.Errorf("records: got %q, want that of what the new version lacks", records)
	}
}

// A live event that the old version dead-letters behind what was resent leaves the new one
// not behind for good: it goes over the event, with a record, and on with the next.
func TestRebuild_GoesOnOverALiveDeadLetter(t *testing.T) {
	r := newRebuilding(t, "rebuild-deadlive")
	r.stop()
	onTopic(t, r.topic, r.db.Name(), lettering)
	r.cfg.Projections = os.Getenv("PROJECTIONS")
	r.projections = load(t, r.cfg.Projections)
	r.stop = keep(t, r.cfg, r.projections)
	send(t, r.topic, happens("a", 1)...)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	done := r.begin(t, "--grace", "0s", "--wait", "1s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	send(t, r.topic, again(2, happens("a", 1))...)
	r.awaitSees(t, "orders_v2", "a", "1 1 [1]")
	send(t, r.topic, event("a", 2, "Failed", `{"n":2}`), happens("a", 3)[0])
	r.awaitSees(t, "orders_v1", "a", "2 4 [1 3]")
	r.awaitSees(t, "orders_v2", "a", "2 4 [1 3]")
	records, _ := skippedOnes(t, "a")
	slices.Sort(records)
	if fmt.Sprint(records) != "[orders_v1 a-2 evaluate deadletter orders_v2 a-2 evaluate skip]" {
		t.Errorf("records: got %q, want the old version's dead letter, and a skip in the new one", records)
	}
	r.says(t, 2, "done")
	if o := ends(t, done); o.err != nil {
		t.Fatalf("rebuild: got %v after %v", o.err, o.lines)
	}
}

// The new version goes over an event that the old one has dead-lettered, and is then just at
// it. That is not the event applied: once the projection is corrected, the dead letter is
// refused, and stays.
func TestRebuild_AnEventThatTheNewVersionWentOverIsNotAppliedAlready(t *testing.T) {
	r := newRebuilding(t, "rebuild-deadover")
	r.stop()
	onTopic(t, r.topic, r.db.Name(), lettering)
	r.cfg.Projections = os.Getenv("PROJECTIONS")
	r.projections = load(t, r.cfg.Projections)
	r.stop = keep(t, r.cfg, r.projections)
	lacking := event("a", 2, "Failed", `{"n":2}`)
	send(t, r.topic, happens("a", 1)[0], lacking)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	until(t, "the event is dead-lettered", func() bool {
		lines, err := runCommand(t, "dlq", "list")
		return err == nil && len(lines) == 1
	})
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	send(t, r.topic, again(2, append(happens("a", 1), lacking))...)
	until(t, "the new version has its record", func() bool {
		records, _ := skippedOnes(t, "a")
		return slices.Contains(records, "orders_v2 a-2 evaluate skip")
	})
	r.says(t, 2, "done")
	if o := ends(t, done); o.err != nil {
		t.Fatalf("rebuild: got %v after %v", o.err, o.lines)
	}
	t.Setenv("PROJECTIONS", file(t, "corrected.yaml", strings.Replace(lettering, "data.gone", "data.n", 1)))
	lines, err := runWhole(t, "dlq", "redrive", "--all", "--other-projections")
	if err == nil || lines[0]["fate"] != "refused" || !strings.Contains(fmt.Sprint(lines[0]["reason"]), `projection "orders_v2" has gone over it`) {
		t.Errorf("redrive: got %v and %v, want it refused", lines, err)
	}
	if lines, err := runCommand(t, "dlq", "list"); err != nil || len(lines) != 1 || fmt.Sprint(lines[0]["lacked_by"]) != "[orders_v2]" {
		t.Errorf("dlq list: got %v and %v, want the dead letter kept, and who lacks it", lines, err)
	}
}
