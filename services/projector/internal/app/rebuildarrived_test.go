package app_test

import (
	"strings"
	"testing"
	"time"
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
