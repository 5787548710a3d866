package app_test

import "testing"

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
