package app_test

import (
	"fmt"
	"strings"
	"testing"
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
