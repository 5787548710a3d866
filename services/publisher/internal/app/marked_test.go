package app_test

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/app"
	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// unnoted starts a publisher, whose mark is in the topic, while what it would write
// down of that fails. The returned function ends the fault.
func unnoted(t *testing.T, servers testserver.Servers) (*process, func()) {
	t.Helper()
	end := testserver.Fault(t, servers, `{"kind":"mongodb.fail","commands":["update"],"code":8000}`)
	p := run(t, configured(servers))
	p.await(t, "the note of the mark to fail", func(s status.Status) bool { return strings.Contains(s.LastError, "keep the record") })
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
	second := run(t, configured(servers, named("b")))
	second.awaitHalt(t, "topic not new", "may be its own marks", "checkpoint set PLACE")
	view, err := say[command.StreamView](t, configured(servers), "status")
	if err != nil || !strings.Contains(view.Halted, "may be its own marks") {
		t.Errorf("status = %+v, %v, want it to say whose the mark may be", view, err)
	}
	_, rest, _ := strings.Cut(view.Halted, "it is to begin at ")
	place, _, _ := strings.Cut(rest, ",")
	if _, err := say[command.MoveView](t, configured(servers), "checkpoint", "set", place, "--why", "nobody else is there"); err != nil {
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
	first := run(t, configured(servers))
	first.await(t, "the first to lead", leading)
	second := run(t, configured(servers, elsewhere))
	shown := second.await(t, "the second to halt", func(s status.Status) bool { return s.State == "halted" })
	if strings.Contains(shown.LastError, "own mark") {
		t.Errorf("the halt is %q, want none of its own", shown.LastError)
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
	c := configured(servers, split(2), patient, func(c *config.Config) { c.ServiceBusConnection = through })
	p := run(t, c)
	testserver.Eventually(t, "it to be decided where both begin", func() bool {
		n, err := state(t, servers, "streams").CountDocuments(t.Context(), bson.D{})
		return err == nil && n == 2
	})
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	// From here on it is the mark alone that the second lacks.
	p = run(t, c)
	p.awaitOverview(t, "the second to wait for the first", func(o app.Overview) bool {
		return strings.Contains(o.Streams[1].LastError, "the first partition has not begun yet")
	})
	source.write(t, 30, 5)
	proxy.Mend()
	p.awaitOverview(t, "what came since to be sent", func(o app.Overview) bool { return o.Sent == 30 })
}

// TestBegin_DocumentsThatAreAllGoneAreWarnedOf has lost the state database, and every
// document that the stream had sent: nothing can tell which were deleted.
func TestBegin_DocumentsThatAreAllGoneAreWarnedOf(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before  int
		mode    func(*config.Config)
		warning bool
	}{
		"documents":                     {5, documents, true},
		"documents, in a topic of none": {0, documents, false},
		"events, which stay sent":       {5, func(*config.Config) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			c := configured(servers, tt.mode)
			for range min(tt.before, 1) {
				p := run(t, c)
				p.await(t, "the publisher to lead", leading)
				source.write(t, tt.before, 5)
				p.await(t, "the documents to be sent", sent(int64(tt.before)))
				if err := p.quit(); err != nil {
					t.Fatal(err)
				}
			}
			wipe(t, source.Collection)
			for _, name := range []string{"resume_tokens", "streams", "stream_gaps", "leader_leases"} {
				wipe(t, state(t, servers, name))
			}
			run(t, c).await(t, "the publisher to begin", leading)
			testserver.Eventually(t, "its mark", func() bool {
				marked, _ := only(t, state(t, servers, "streams")).Lookup("marked").BooleanOK()
				return marked
			})
			view, err := say[command.StreamView](t, c, "status")
			if warned := strings.Contains(strings.Join(view.Warnings, " "), "when the source had no documents"); err != nil || warned != tt.warning {
				t.Errorf("status warns of %q, %v, want it to tell: %t", view.Warnings, err, tt.warning)
			}
		})
	}
}

// TestBegin_ACopyOfDocumentsBehindOthersIsWarnedOf has lost the state database, and one
// of the documents that the stream had sent: the copy of the rest does not tell of it.
func TestBegin_ACopyOfDocumentsBehindOthersIsWarnedOf(t *testing.T) {
	t.Parallel()
	all := []string{"resume_tokens", "streams", "stream_gaps", "leader_leases"}
	for name, tt := range map[string]struct {
		mode    func(*config.Config)
		lost    []string
		warning bool
	}{
		"documents":                       {documents, all, true},
		"documents, in a topic of none":   {documents, nil, false},
		"documents, and its own messages": {documents, []string{"its mark"}, false},
		"events, which stay sent":         {func(*config.Config) {}, all, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			if tt.lost == nil { // what is sent beside the mark would come first
				testserver.Fault(t, servers, `{"kind":"mongodb.delay","commands":["findAndModify"],"delay":"200ms"}`)
			}
			source := events(t, servers)
			c := configured(servers, tt.mode, func(c *config.Config) { c.StartAt = "snapshot" })
			source.write(t, 100, 100)
			marked := func() bool {
				marked, _ := only(t, state(t, servers, "streams")).Lookup("marked").BooleanOK()
				return marked
			}
			p := run(t, c)
			p.await(t, "the documents to be sent", sent(100))
			testserver.Eventually(t, "the mark", marked)
			if tt.lost != nil {
				if err := p.quit(); err != nil {
					t.Fatal(err)
				}
				if _, err := source.DeleteOne(t.Context(), bson.D{}); err != nil {
					t.Fatal(err)
				}
				for _, name := range tt.lost {
					if name == "its mark" {
						edit(t, state(t, servers, "streams"), "$unset", "marked", "")
						continue
					}
					wipe(t, state(t, servers, name))
				}
				run(t, c).await(t, "the next to lead", leading)
				testserver.Eventually(t, "its mark", marked)
			}
			view, err := say[command.StreamView](t, c, "status")
			if warned := strings.Contains(strings.Join(view.Warnings, " "), ", with a copy, in a topic"); err != nil || warned != tt.warning {
				t.Errorf("status warns of %q, %v, want it to tell: %t", view.Warnings, err, tt.warning)
			}
		})
	}
}
