package app_test

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
)

// An event that one resend leaves out is not applied when the next one has it: by then the
// new version is past it. So whatever was resent for the version has to be whole, or the
// rebuild has to begin again.
func TestRebuild_AHoleThatAResendHasLeftIsFilledByNoLaterOne(t *testing.T) {
	r := newRebuilding(t, "rebuild-lefthole")
	send(t, r.topic, happens("a", 1, 2, 3)...)
	r.awaitSees(t, "orders", "a", "3 6 [1 2 3]")
	done := r.begin(t)
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	r.write(t, r.status(t, "orders", 2, "done", 1))
	send(t, r.topic, again(2, happens("a", 1, 3))...)
	stopsFor(t, ends(t, done), "1 events could not be resent")
	send(t, r.topic, again(2, happens("a", 1, 2, 3))...)

	const all = `{"id":"r3","state":"done","group":"/orders_v2","why":"by hand","sent":3,"failed":0}` + "\n"
	const few = `{"id":"r2","state":"done","group":"/orders_v2","why":"another","selection":{"aggregates":["a"]},"sent":2,"failed":1}` + "\n"
	const some = `{"id":"r2","state":"done","group":"/orders_v2","why":"another","selection":{"aggregates":["a"],"where":"{}"},"sent":2,"failed":0}` + "\n"
	whole := r.status(t, "orders", 2, "done", 0)
	for name, tt := range map[string]struct{ resends, refused string }{
		"of everything":            {all + r.status(t, "orders", 2, "done", 1), "1 events could not be resent"},
		"of everything, cancelled": {whole + r.status(t, "orders", 2, "cancelled", 1), "1 events could not be resent"},
		"of an aggregate":          {all + few + whole, "1 events could not be resent"},
		"of both":                  {all + few + r.status(t, "orders", 2, "done", 2), "3 events could not be resent"},
		"that has ended early":     {all + r.status(t, "orders", 2, "incomplete", 0), "has ended without all that was selected"},
		"of some of the events":    {all + some + r.status(t, "orders", 2, "cancelled", 0), "had some events of an aggregate and not others"},
	} {
		r.write(t, tt.resends)
		o := ends(t, r.begin(t, "--grace", "0s"))
		stopsFor(t, o, tt.refused)
		if last := fmt.Sprint(o.lines[len(o.lines)-1]["refused"]); !strings.Contains(last, "version 2 may be past") || !strings.Contains(last, "--cancel") {
			t.Errorf("a resend %s: refused for %s, want it to say what helps", name, last)
		}
	}
	r.awaitSees(t, "orders", "a", "3 6 [1 2 3]")

	r.cancels(t)
	done = r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked again", func() bool { return strings.Contains(r.asked(), "/orders_v3 ") })
	send(t, r.topic, again(3, happens("a", 1, 2, 3))...)
	r.says(t, 3, "done")
	if o := ends(t, done); o.err != nil {
		t.Fatalf("begun again: got %v after %v", o.err, o.lines)
	}
	r.awaitSees(t, "orders", "a", "3 6 [1 2 3]")
}

// What was resent and was lost on its way leaves a hole that no position shows, whatever is
// done with the dead letter: the new version is past it.
func TestRebuild_WhatWasResentAndIsLostOnItsWayIsMissed(t *testing.T) {
	r := newRebuilding(t, "rebuild-lostway")
	send(t, r.topic, happens("a", 1, 2, 3, 4)...)
	r.awaitSees(t, "orders", "a", "4 10 [1 2 3 4]")
	stopsFor(t, r.misses(t, 3, 1, 2, 4), `1 of them were resent for "orders_v2"`)
	r.awaitSees(t, "orders_v2", "a", "3 7 [1 2 4]")
	const cancels = "end the rebuild with projector rebuild --projection NAME --cancel, and begin again"
	lines, err := runCommand(t, "dlq", "redrive", "--all")
	if err == nil || lines[0]["fate"] != "refused" || !strings.Contains(fmt.Sprint(lines[0]["reason"]), cancels) {
		t.Errorf("redrive: got %v and %v, want it refused, and what to do", lines, err)
	}
	if lines, err := runCommand(t, "dlq", "discard", "--all"); err != nil {
		t.Fatalf("discard: got %v and %v", lines, err)
	}
	stopsFor(t, ends(t, r.begin(t, "--grace", "0s")), `version 2 lacks events before or between those that were resent of 1 aggregates: "a"; `)
	if lines, err := runCommand(t, "incomplete", "list"); err != nil || len(lines) != 1 ||
		fmt.Sprint(lines[0]["aggregate"], lines[0]["begins_at"], lines[0]["first_missing"]) != fmt.Sprint("a", sequence("a", 1), sequence("a", 3)) {
		t.Errorf("list: got %v and %v, want the aggregate, and what it lacks", lines, err)
	}
	r.cancels(t)
	if lines, err := runCommand(t, "incomplete", "list"); err != nil || len(lines) != 0 {
		t.Errorf("list, without the version: got %v and %v, want nothing", lines, err)
	}
}

// loses deletes the document of an aggregate that readers see, as nobody should.
func (r *rebuilding) loses(t *testing.T, collection, aggregate string) {
	t.Helper()
	if done, err := r.db.Collection(collection).DeleteOne(t.Context(), bson.D{{Key: "_id", Value: aggregate}}); err != nil || done.DeletedCount != 1 {
		t.Fatalf("delete %q of %q: got %v and %v", aggregate, collection, done, err)
	}
}

// misses begins a rebuild, dead-letters the resent event of a of one version, and has the others
// resent. What was dead-lettered speaks against going on.
func (r *rebuilding) misses(t *testing.T, lost int64, others ...int64) outcome {
	t.Helper()
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	r.stop()
	send(t, r.topic, again(2, happens("a", lost))...)
	deadLetter(t, r.topic, "a")
	send(t, r.topic, again(2, happens("a", others...))...)
	r.stop = keep(t, r.cfg, r.projections)
	until(t, "the others are applied", func() bool { return strings.HasPrefix(r.sees(t, "orders_v2", "a"), fmt.Sprintf("%d ", len(others))) })
	r.says(t, 2, "done")
	o := ends(t, done)
	stopsFor(t, o, "1 messages of 1 aggregates are dead-lettered")
	return o
}

// fillsWithout is misses, after which the dead letter is discarded.
func (r *rebuilding) fillsWithout(t *testing.T, lost int64, others ...int64) {
	t.Helper()
	r.misses(t, lost, others...)
	if lines, err := runCommand(t, "dlq", "discard", "--all"); err != nil {
		t.Fatalf("discard: got %v and %v", lines, err)
	}
}

// incomplete checks which event of aggregate a is listed as missing, and where it begins.
func incomplete(t *testing.T, begins, missing int64) {
	t.Helper()
	lines, err := runCommand(t, "incomplete", "list")
	if err != nil || len(lines) != 1 || fmt.Sprint(lines[0]["aggregate"], lines[0]["begins_at"], lines[0]["first_missing"]) != fmt.Sprint("a", sequence("a", begins), sequence("a", missing)) {
		t.Errorf("list: got %v and %v, want a to begin at %d and to lack %d", lines, err, begins, missing)
	}
}

// Where the new version begins later than the old one, what is refused says what helps: the same
// command would be refused alike for ever.
func TestRebuild_AVersionThatBeginsLaterIsBegunAgain(t *testing.T) {
	r := newRebuilding(t, "rebuild-lostbegin")
	send(t, r.topic, happens("a", 1, 2, 3)...)
	r.awaitSees(t, "orders", "a", "3 6 [1 2 3]")
	r.fillsWithout(t, 1, 2, 3)
	o := ends(t, r.begin(t, "--grace", "0s"))
	stopsFor(t, o, `version 2 begins 1 aggregates later than version 1, and lacks what was before: "a"; `)
	stopsFor(t, o, "end the rebuild with --cancel, and begin again")
	r.cancels(t)
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked again", func() bool { return strings.Contains(r.asked(), "/orders_v3 ") })
	send(t, r.topic, again(3, happens("a", 1, 2, 3))...)
	r.says(t, 3, "done")
	if o := ends(t, done); o.err != nil {
		t.Errorf("begun again: got %v after %v", o.err, o.lines)
	}
	r.awaitSees(t, "orders", "a", "3 6 [1 2 3]")
}

// Where the old document is lost no comparison shows that the first event is missing. Where the
// source has no more of the aggregate, an operator says so.
func TestRebuild_AFirstEventThatIsLostIsMissedWithoutTheOldDocument(t *testing.T) {
	r := newRebuilding(t, "rebuild-lostfirst")
	send(t, r.topic, happens("a", 1, 2, 3)...)
	r.awaitSees(t, "orders", "a", "3 6 [1 2 3]")
	r.loses(t, "orders_v1", "a")
	r.fillsWithout(t, 1, 2, 3)
	stopsFor(t, ends(t, r.begin(t, "--grace", "0s")), `version 2 lacks events before or between those that were resent of 1 aggregates: "a"; `)
	incomplete(t, 2, 1)
	if lines, err := runCommand(t, "incomplete", "accept", "--all"); err != nil || len(lines) != 1 {
		t.Errorf("accept: got %v and %v, want the aggregate", lines, err)
	}
	if o := ends(t, r.begin(t, "--grace", "0s")); o.err != nil {
		t.Errorf("accepted: got %v after %v", o.err, o.lines)
	}
}

// Nor does one show that the last event is missing, until a live event goes over the hole.
func TestRebuild_ALastEventThatIsLostIsMissedWithoutTheOldDocument(t *testing.T) {
	r := newRebuilding(t, "rebuild-lostlast")
	send(t, r.topic, happens("a", 1, 2, 3, 4)...)
	r.awaitSees(t, "orders", "a", "4 10 [1 2 3 4]")
	r.loses(t, "orders_v1", "a")
	r.fillsWithout(t, 4, 1, 2, 3)
	done := r.begin(t, "--grace", "1h")
	r.awaitSees(t, "orders", "a", "3 6 [1 2 3]")
	send(t, r.topic, happens("a", 5)...)
	r.awaitSees(t, "orders", "a", "4 11 [1 2 3 5]")
	incomplete(t, 1, 4)
	r.cancels(t)
	if o := ends(t, done); o.err == nil {
		t.Errorf("the command that waited for the end of the grace: got %v, want an error", o.lines)
	}
}

// What a rebuild has left in the dead letters when it was cancelled speaks against no other one,
// and nothing here takes it any more.
func TestRebuild_WhatACancelledOneHasLeftInTheDeadLettersSpeaksAgainstNone(t *testing.T) {
	r := newRebuilding(t, "rebuild-leftover")
	send(t, r.topic, happens("a", 1, 2, 3)...)
	r.awaitSees(t, "orders", "a", "3 6 [1 2 3]")
	r.misses(t, 2, 1, 3)
	r.awaitSees(t, "orders_v2", "a", "2 4 [1 3]")
	r.cancels(t)
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked again", func() bool { return strings.Contains(r.asked(), "/orders_v3 ") })
	send(t, r.topic, again(3, happens("a", 1, 2, 3))...)
	r.says(t, 3, "done")
	if o := ends(t, done); o.err != nil {
		t.Errorf("begun again: got %v after %v", o.err, o.lines)
	}
	r.awaitSees(t, "orders", "a", "3 6 [1 2 3]")
	lines, err := runCommand(t, "dlq", "redrive", "--all")
	if err == nil || lines[0]["fate"] != "not for this group" || !strings.Contains(fmt.Sprint(lines[0]["reason"]), `resent for "/orders_v2"`) {
		t.Errorf("redrive: got %v and %v, want it to be nobody's", lines, err)
	}
	r.nothingHalted(t)
}

// A live event that was dead-lettered, and over which later ones were applied, comes back with a
// rebuild, once what redrive says was done, as it is said.
func TestRebuild_IsTheWayBackFromALiveEventThatWasOvertaken(t *testing.T) {
	r := newRebuilding(t, "rebuild-overtaken")
	send(t, r.topic, happens("a", 1)...)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	r.stop()
	send(t, r.topic, happens("a", 2)...)
	deadLetter(t, r.topic, "a")
	send(t, r.topic, happens("a", 3)...)
	r.stop = keep(t, r.cfg, r.projections)
	r.awaitSees(t, "orders", "a", "2 4 [1 3]")
	stopsFor(t, ends(t, r.begin(t)), "see projector dlq list and redrive")
	lines, err := runCommand(t, "dlq", "redrive", "--all")
	before, after, both := strings.Cut(fmt.Sprint(lines[0]["reason"]), "; then build the read model anew")
	_, number, found := strings.Cut(before, "First remove the dead letter with projector dlq discard ")
	if err == nil || !both || !found || !strings.Contains(after, "projector rebuild --projection NAME") {
		t.Fatalf("redrive: got %v and %v, want it refused, and what to do", lines, err)
	}
	number, _, _ = strings.Cut(number, ",")
	if lines, err := runCommand(t, "dlq", "discard", number); err != nil || len(lines) != 1 {
		t.Fatalf("discard %s: got %v and %v", number, lines, err)
	}
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	send(t, r.topic, again(2, happens("a", 1, 2, 3))...)
	r.says(t, 2, "done")
	if o := ends(t, done); o.err != nil {
		t.Errorf("got %v after %v", o.err, o.lines)
	}
	r.awaitSees(t, "orders", "a", "3 6 [1 2 3]")
}

func sequence(aggregate string, version int64) contract.Sequence {
	return happens(aggregate, version)[0].Sequence
}

// Where the source has a hole, an operator says so, and readers are switched.
func TestRebuild_AHoleThatIsAcceptedIsNone(t *testing.T) {
	r := newRebuilding(t, "rebuild-putback")
	send(t, r.topic, happens("a", 1, 3)...)
	send(t, r.topic, happens("b", 1, 2, 3)...)
	r.awaitSees(t, "orders", "a", "2 4 [1 3]")
	r.awaitSees(t, "orders", "b", "3 6 [1 2 3]")
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	send(t, r.topic, again(2, happens("a", 1, 3))...)
	// What is dead-lettered and the version has not passed is sent to it again.
	r.stop()
	send(t, r.topic, again(2, happens("b", 2))...)
	deadLetter(t, r.topic, "b")
	send(t, r.topic, again(2, happens("b", 1))...)
	r.stop = keep(t, r.cfg, r.projections)
	r.awaitSees(t, "orders_v2", "a", "2 4 [1 3]")
	r.awaitSees(t, "orders_v2", "b", "1 1 [1]")
	lines, err := runCommand(t, "dlq", "redrive", "--all")
	if err == nil || lines[0]["fate"] != "refused" || !strings.Contains(fmt.Sprint(lines[0]["reason"]), "publisher resend --aggregate b --group /orders_v2 ") {
		t.Errorf("redrive: got %v and %v, want it refused, and how it is sent again", lines, err)
	}
	if lines, err := runCommand(t, "dlq", "discard", "--all"); err != nil {
		t.Fatalf("discard: got %v and %v", lines, err)
	}
	send(t, r.topic, again(2, happens("b", 1, 2, 3))...)
	r.awaitSees(t, "orders_v2", "b", "3 6 [1 2 3]")
	r.awaitSees(t, "orders", "b", "3 6 [1 2 3]")
	r.nothingHalted(t)
	r.says(t, 2, "done")
	stopsFor(t, ends(t, done), `of 1 aggregates: "a"; `)
	if lines, err := runCommand(t, "incomplete", "accept", "--all"); err != nil || len(lines) != 1 {
		t.Errorf("accept: got %v and %v, want the aggregate", lines, err)
	}
	if o := ends(t, r.begin(t, "--grace", "0s")); o.err != nil {
		t.Errorf("accepted: got %v after %v", o.err, o.lines)
	}
	r.awaitSees(t, "orders", "a", "2 4 [1 3]")
}
