package app_test

import (
	"strings"
	"testing"

	"changerelay/services/publisher/internal/app"
	"changerelay/services/publisher/internal/testserver"
)

// unnoted starts a publisher, whose mark is in the topic, while what it would write
// down of that fails. The returned function ends the fault.
func unnoted(t *testing.T, servers testserver.Servers) (*process, func()) {
	t.Helper()
	end := testserver.Fault(t, servers, `{"kind":"mongodb.fail","commands":["update"],"code":8000}`)
	p := run(t, config(servers))
	p.await(t, "the note of the mark to fail", func(s app.Status) bool { return strings.Contains(s.LastError, "keep the record") })
	return p, end
}

// TestBegin_ANoteThatFailsIsMadeLaterAndTheMarkOnce has a stream that is the first
// in its topic not find itself there.
func TestBegin_ANoteThatFailsIsMadeLaterAndTheMarkOnce(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	source.write(t, 20, 5)
	p, mend := unnoted(t, servers)
	source.write(t, 30, 5)
	mend()
	p.await(t, "what came since to be sent", sent(30))
	if marks := only(t, state(t, servers, "streams")).Lookup("marks").AsInt64(); marks != 1 {
		t.Errorf("the topic was marked %d times, want once", marks)
	}
}

// TestBegin_AMarkThatMayBeTheStreamsOwnIsSaidToBe has a publisher die between its mark
// and the note. Nobody can tell its mark from another's: the halt says so, and where
// the stream was to begin.
func TestBegin_AMarkThatMayBeTheStreamsOwnIsSaidToBe(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	source.write(t, 20, 5)
	p, mend := unnoted(t, servers)
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	mend()
	source.write(t, 30, 5)
	second := run(t, config(servers, named("b")))
	second.awaitHalt(t, "topic not new", "may be its own marks", "checkpoint set PLACE")
	view, err := say[app.StreamView](t, config(servers), "status")
	if err != nil || !strings.Contains(view.Halted, "may be its own marks") {
		t.Errorf("status = %+v, %v, want it to say whose the mark may be", view, err)
	}
	_, rest, _ := strings.Cut(view.Halted, "it is to begin at ")
	place, _, _ := strings.Cut(rest, ",")
	if _, err := say[app.MoveView](t, config(servers), "checkpoint", "set", place, "--why", "nobody else is there"); err != nil {
		t.Fatal(err)
	}
	second.await(t, "what came since to be sent", sent(30))
}

// TestBegin_AMarkOfAnotherIsNotTakenForTheStreamsOwn is the halt of a stream that was
// never marked before.
func TestBegin_AMarkOfAnotherIsNotTakenForTheStreamsOwn(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	events(t, servers).write(t, 20, 5)
	first := run(t, config(servers))
	first.await(t, "the first to lead", leading)
	second := run(t, config(servers, elsewhere))
	status := second.await(t, "the second to halt", func(s app.Status) bool { return s.State == "halted" })
	if strings.Contains(status.LastError, "own mark") {
		t.Errorf("the halt is %q, want none of its own", status.LastError)
	}
}

// TestBegin_APartitionWaitsForTheMarkOfTheFirst has the topic out of reach: only the
// first partition asks it whether the stream is alone.
func TestBegin_APartitionWaitsForTheMarkOfTheFirst(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	source.write(t, 20, 5)
	proxy, through := busProxy(t, servers)
	proxy.Cut()
	p := run(t, config(servers, split(2), patient, func(c *app.Config) { c.ServiceBusConnection = through }))
	p.awaitOverview(t, "the second to wait for the first", func(o app.Overview) bool {
		return strings.Contains(o.Streams[1].LastError, "the first partition has not begun yet")
	})
	source.write(t, 30, 5)
	proxy.Mend()
	p.awaitOverview(t, "what came since to be sent", func(o app.Overview) bool { return o.Sent == 30 })
}
