package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/projector/internal/projection"
)

// Where the old documents are lost, a comparison with them does not show that nothing of what
// was resent has come to the projectors.
func TestRebuild_OfWhichNothingHasArrivedIsNotDone(t *testing.T) {
	r := newRebuilding(t, "rebuild-nothing")
	send(t, r.topic, happens("a", 1, 2)...)
	r.awaitSees(t, "orders", "a", "2 3 [1 2]")
	lose(t, r.db, "orders_v1")
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	r.says(t, 2, "done")
	stopsFor(t, ends(t, done), `version 2 has nothing of the 5 messages that the publisher has sent for it: it may send to another topic than "rebuild-nothing"`)
	r.write(t, with(r.status(t, "orders", 2, "done", 0), `"source":"/other/events"`))
	send(t, r.topic, happens("b", 1)...)
	r.awaitSees(t, "orders", "b", "1 1 [1]")
	stopsFor(t, ends(t, r.begin(t, "--grace", "0s")), "is of the source /other/events, and the documents of version 1 are of /")
}

// What a database lacks that was restored from a backup, a resend had brought that its publisher
// still knows of, as the rebuild that has asked for it.
func TestRebuild_OfADatabaseThatWentBackBeginsAnew(t *testing.T) {
	r := newRebuilding(t, "rebuild-wentback")
	send(t, r.topic, happens("a", 1)...)
	send(t, r.topic, happens("b", 1)...)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	r.awaitSees(t, "orders", "b", "1 1 [1]")
	done := r.begin(t)
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	send(t, r.topic, again(2, happens("a", 1))...)
	r.awaitSees(t, "orders_v2", "a", "1 1 [1]")
	for _, name := range []string{"orders_v1", "orders_v2"} { // which lack the other one
		if _, err := r.db.Collection(name).DeleteOne(t.Context(), bson.D{{Key: "_id", Value: "b"}}); err != nil {
			t.Fatal(err)
		}
	}
	lose(t, r.db, projection.Processes)
	if o := ends(t, done); o.err == nil || !strings.Contains(o.err.Error(), "changed at the same time") {
		t.Errorf("got %v after %v, want that a projector has changed it", o.err, o.lines)
	}
	r.says(t, 2, "done")
	const restored = "was restored from before since the rebuild began"
	stopsFor(t, ends(t, r.begin(t, "--grace", "0s")), restored)
	if lines, err := runCommand(t, "rebuild", "--projection", "orders", "--dry-run"); err != nil || !strings.Contains(fmt.Sprint(lines[0]["refused"]), restored) {
		t.Errorf("dry run: got %v and %v, want it refused", lines, err)
	}
	r.cancels(t)
	done = r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked again", func() bool { return strings.Contains(r.asked(), "/orders_v3 ") })
	if lines, err := runCommand(t, "rebuild", "--projection", "orders", "--dry-run"); err != nil || lines[0]["refused"] != nil {
		t.Errorf("dry run, begun anew: got %v and %v, want nothing refused", lines, err)
	}
	send(t, r.topic, again(3, happens("a", 1))...)
	send(t, r.topic, again(3, happens("b", 1))...)
	r.says(t, 3, "done")
	if o := ends(t, done); o.err != nil {
		t.Errorf("begun anew: got %v after %v", o.err, o.lines)
	}
	r.awaitSees(t, "orders", "b", "1 1 [1]")
}

// Whether a resend had ended before the rebuild began is told by two clocks: nobody knows where
// that of the publisher is behind.
func TestRebuild_APublisherWhoseClockIsBehindProvesNothing(t *testing.T) {
	r := newRebuilding(t, "rebuild-clock")
	send(t, r.topic, happens("a", 1, 2, 3)...)
	r.awaitSees(t, "orders", "a", "3 6 [1 2 3]")
	done := r.begin(t, "--grace", "0s")
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	send(t, r.topic, again(2, happens("a", 1, 2, 3))...)
	own := r.status(t, "orders", 2, "done", 0)
	reported := func(at time.Time) string {
		const early = `{"id":"r0","state":"done","group":"/orders_v2","why":"a guess","selection":{"where":"{}"},"ended_at":%AT,"sent":2,"failed":0}` + "\n"
		return strings.ReplaceAll(with(own, `"reported_at":%AT`)+early, "%AT", at.UTC().Format(`"2006-01-02T15:04:05Z07:00"`))
	}
	looked := r.looked()
	r.write(t, reported(time.Now().Add(-20*time.Minute)))
	until(t, "it looks again", func() bool { return r.looked() > looked+1 })
	const behind = "says that it is "
	if o := ends(t, r.begin(t, "--grace", "0s")); o.err == nil || !strings.Contains(o.err.Error(), behind) {
		t.Errorf("begun beside that: got %v after %v, want to hear of it", o.err, o.lines)
	}
	r.write(t, reported(time.Now().Add(time.Hour)))
	stopsFor(t, ends(t, done), "resend r0 was for the version before")
	r.write(t, reported(time.Now().Add(-20*time.Minute)))
	if o := ends(t, r.begin(t, "--grace", "0s", "--force")); o.err != nil {
		t.Errorf("forced: got %v after %v", o.err, o.lines)
	}
}

// Whoever cancels the resend has ended it for good: a rebuild that waits for it has nothing
// resent in its place.
func TestRebuild_AResendThatIsCancelledIsNotAskedForAgain(t *testing.T) {
	r := newRebuilding(t, "rebuild-cancelled")
	send(t, r.topic, happens("a", 1)...)
	r.awaitSees(t, "orders", "a", "1 1 [1]")
	done := r.begin(t)
	until(t, "the publisher is asked", func() bool { return r.asked() != "" })
	asked := r.asked()
	r.says(t, 2, "cancelled")
	o := ends(t, done)
	stopsFor(t, o, "the resend was cancelled")
	if last := o.lines[len(o.lines)-1]; !strings.HasPrefix(last["command"].(string), "publisher resend --all --group /orders_v2 ") {
		t.Errorf("got %v, want the command that has everything resent", last)
	}
	stopsFor(t, ends(t, r.begin(t)), "the resend was cancelled")
	if got := r.asked(); got != asked {
		t.Errorf("asked: got %s, want nothing more than %s", got, asked)
	}
}
