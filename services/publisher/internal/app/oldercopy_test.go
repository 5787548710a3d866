package app_test

import (
	"os"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/settings"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// TestHistory_AnOlderCopyOfTheSourceIsSeenFromATokenOfAnEmptyRead has a source put back to
// an older copy of its data, whose clock has passed the checkpoint's token since. In one
// copy there is the last event that was read.
func TestHistory_AnOlderCopyOfTheSourceIsSeenFromATokenOfAnEmptyRead(t *testing.T) {
	t.Parallel()
	for name, older := range map[string]bool{"an older copy": true, "one that has the last event": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, backup := t.TempDir(), t.TempDir()
			kept := testserver.Start(t)
			servers := testserver.Start(t, "--data", data)
			source := events(t, servers)
			onto := func(uri string) func(*config.Config) {
				return func(c *config.Config) {
					c.MongoURI, c.StateMongoURI = settings.Secret(uri), settings.Secret(kept.MongoURI)
					c.ServiceBusConnection = settings.Secret(kept.ServiceBus)
				}
			}
			copied := func() {
				if err := os.CopyFS(backup, os.DirFS(data)); err != nil {
					t.Fatal(err)
				}
			}
			p := run(t, configured(servers, onto(servers.MongoURI)))
			p.await(t, "the publisher to lead", leading)
			source.write(t, 20, 5)
			p.await(t, "the events to be sent", sent(20))
			if older {
				copied()
			}
			source.write(t, 20, 5)
			p.await(t, "the later events to be sent", sent(40))
			last := p.status(t).Position
			if _, err := source.Database().Collection("others").InsertOne(t.Context(), bson.D{}); err != nil {
				t.Fatal(err)
			}
			p.await(t, "an empty read behind them", func(s status.Status) bool { return s.Position > last })
			if err := p.quit(); err != nil {
				t.Fatal(err)
			}
			if !older {
				copied()
			}
			restored := testserver.Start(t, "--data", backup)
			again := events(t, restored)
			again.write(t, 20, 5)
			p = run(t, configured(servers, onto(restored.MongoURI), policy(config.DecideStop)))
			if older {
				p.awaitHalt(t, "history lost", "older copy")
				return
			}
			p.await(t, "what comes behind to be sent", sent(20))
		})
	}
}

// TestHistory_AnOlderCopyInPlaceOfTheSourceIsSeenWhileALeaderReads has the address of a
// source lead to an older copy of it between two questions of a leader, whose driver
// resumes the stream there by itself.
func TestHistory_AnOlderCopyInPlaceOfTheSourceIsSeenWhileALeaderReads(t *testing.T) {
	t.Parallel()
	data, backup := t.TempDir(), t.TempDir()
	kept := testserver.Start(t)
	servers := testserver.Start(t, "--data", data)
	source := events(t, servers)
	proxy, through := mongoProxy(t, servers)
	p := run(t, configured(servers, policy(config.DecideStop), func(c *config.Config) {
		c.MongoURI, c.StateMongoURI = through, settings.Secret(kept.MongoURI)
		c.ServiceBusConnection = settings.Secret(kept.ServiceBus)
	}))
	p.await(t, "the publisher to lead", leading)
	source.write(t, 20, 5)
	p.await(t, "the events to be sent", sent(20))
	if err := os.CopyFS(backup, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	source.write(t, 20, 5)
	p.await(t, "the later events to be sent", sent(40))
	last := p.status(t).Position
	if _, err := source.Database().Collection("others").InsertOne(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	p.await(t, "an empty read behind them", func(s status.Status) bool { return s.Position > last })
	restored := testserver.Start(t, "--data", backup)
	again := events(t, restored)
	again.write(t, 20, 5)
	proxy.Lead(mongoHost(t, restored))
	shown := p.await(t, "the halt, or an event of the copy", func(s status.Status) bool { return s.State == "halted" || s.Sent > 40 })
	if shown.Sent > 40 || !strings.Contains(shown.LastError, "older copy") {
		t.Errorf("%d events were sent, and it is %s with %q, want none of the copy, and a halt that names it", shown.Sent, shown.State, shown.LastError)
	}
}
