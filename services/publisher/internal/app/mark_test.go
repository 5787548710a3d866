package app_test

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/app"
	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// elsewhere is a second deployment, as a copied manifest makes it.
func elsewhere(c *config.Config) {
	c.InstanceID, c.StateDatabase, c.LeaseName = "elsewhere", "elsewhere", "elsewhere"
}

// TestBegin_ANewStreamBehindAnotherHaltsUntilItIsDecided stops a publisher and
// leaves it a backlog. What is new in the topic must not begin ahead of that.
func TestBegin_ANewStreamBehindAnotherHaltsUntilItIsDecided(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before, sent int // written before the first begins, and sent by it
		second       func(*config.Config)
	}{
		"one that has sent":                       {0, 50, func(*config.Config) {}},
		"one that has begun in an empty source":   {0, 0, func(*config.Config) {}},
		"one that has begun and left out a few":   {5, 0, func(*config.Config) {}},
		"one beside which another begins later":   {0, 50, func(c *config.Config) { c.StartAt = time.Now().Add(-time.Second).Format(time.RFC3339) }},
		"one of another name in the same state":   {0, 50, func(c *config.Config) { c.StateDatabase, c.StreamName = "change_relay", "shop.copy" }},
		"one beside which partitions would begin": {0, 50, split(3)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			source.write(t, tt.before, 5)
			place := time.Now().Add(-time.Minute).Format(time.RFC3339)
			first := run(t, configured(servers))
			first.await(t, "the first to lead", leading)
			source.write(t, tt.sent, 5)
			first.await(t, "its events to be sent", sent(int64(tt.sent)))
			testserver.Eventually(t, "its mark", func() bool {
				marked, _ := only(t, state(t, servers, "streams")).Lookup("marked").BooleanOK()
				return marked
			})
			if err := first.quit(); err != nil {
				t.Fatal(err)
			}
			source.write(t, 50, 5) // the backlog
			second := run(t, configured(servers, elsewhere, tt.second))
			c := configured(servers, elsewhere, tt.second)
			testserver.Eventually(t, "the second to halt", func() bool {
				halted, err := testserver.Connect(t, servers.MongoURI).Database(c.StateDatabase).Collection("streams").
					CountDocuments(t.Context(), bson.D{{Key: "halt", Value: bson.Regex{Pattern: "topic not new.*publisher checkpoint set PLACE"}}})
				return err == nil && halted == int64(max(c.Partitions, 1))
			})
			if got := second.status(t).Sent; got != 0 {
				t.Errorf("the second has sent %d events, want none", got)
			}
			args := []string{"checkpoint", "set", place, "--why", "the first is gone"}
			if _, err := say[command.MoveView](t, c, args...); err != nil {
				t.Fatal(err)
			}
			second.awaitOverview(t, "the second to go on", func(o app.Overview) bool { return o.Sent >= int64(tt.before+tt.sent+50) })
			source.wantAll(t, source.drain(t, servers))
		})
	}
}

func TestBegin_WhatLeavesNothingOutMayBeginBehindAnother(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before int
		second func(*config.Config)
	}{
		"a copy":             {20, func(c *config.Config) { c.StartAt = "snapshot" }},
		"in an empty source": {0, func(*config.Config) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			first := run(t, configured(servers))
			first.await(t, "the first to lead", leading)
			source.write(t, tt.before, 5)
			first.await(t, "its events to be sent", sent(int64(tt.before)))
			second := run(t, configured(servers, elsewhere, tt.second))
			second.await(t, "the second to lead", leading)
			source.write(t, 20, 5)
			second.await(t, "all to be sent", sent(int64(tt.before+20)))
			source.wantAll(t, source.drain(t, servers))
		})
	}
}

// TestBegin_PartitionsOfANewStreamBeginTogether begins several in a topic that is
// new: only one of them can be the first there.
func TestBegin_PartitionsOfANewStreamBeginTogether(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	source.write(t, 20, 5)
	p := run(t, configured(servers, split(3), patient))
	p.awaitOverview(t, "all partitions to be led", leads(3))
	source.write(t, 30, 5)
	p.awaitOverview(t, "what came since to be sent", func(o app.Overview) bool { return o.Sent == 30 })
}

// TestBegin_WhileTheTopicIsOutOfReachThePlaceIsKept writes events after a stream
// was begun that could not ask whether it is alone.
func TestBegin_WhileTheTopicIsOutOfReachThePlaceIsKept(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	source.write(t, 20, 5)
	proxy, through := busProxy(t, servers)
	proxy.Cut()
	c := configured(servers, func(c *config.Config) { c.ServiceBusConnection = through })
	p := run(t, c)
	shown := p.await(t, "the outage to be said", func(s status.Status) bool { return s.LastError != "" })
	if leading(shown) {
		t.Errorf("status is %+v, want it not to lead before it knows", shown)
	}
	began := only(t, state(t, servers, "streams")).Lookup("began", "startAt")
	source.write(t, 30, 5)
	proxy.Mend()
	p.await(t, "what came since to be sent", sent(30))
	if again := only(t, state(t, servers, "streams")).Lookup("began", "startAt"); !again.Equal(began) {
		t.Errorf("the stream began at %v, and at %v before the topic was there", again, began)
	}
}
