package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/testserver"
)

// TestBehind_AResendOvertakesNothingThatTheStreamHasStillToSend has the stream be behind
// with events of an aggregate of which a later one is selected: the topic takes nothing,
// and more than the window and what is read ahead of it are before them.
func TestBehind_AResendOvertakesNothingThatTheStreamHasStillToSend(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	c := configured(servers, func(c *config.Config) { c.MaxInFlight = 64 })
	p := run(t, c)
	p.await(t, "the publisher to lead", leading)
	event := func(id string, version int, kind string) bson.D {
		return bson.D{{Key: "aggregateId", Value: id}, {Key: "version", Value: version}, {Key: "type", Value: kind}}
	}
	insert := func(all ...any) {
		t.Helper()
		if _, err := source.InsertMany(t.Context(), all); err != nil {
			t.Fatal(err)
		}
	}
	insert(event("a", 1, "Placed"))
	p.await(t, "the first event to be sent", sent(1))
	accept := testserver.Fault(t, servers, `{"kind":"servicebus.throttle","path":"`+testserver.Topic+`"}`)
	const others = 1000
	var between []any
	for n := range others {
		between = append(between, event(fmt.Sprint("other-", n), 1, "Placed"))
	}
	insert(between...)
	insert(event("a", 2, "Placed"), event("a", 3, "Placed"), event("a", 4, "Paid"))
	if _, err := resends(t, c, "--where", `{"type":"Paid"}`, "--why", "a test"); err != nil {
		t.Fatal(err)
	}
	awaitResend(t, c, "it to say what it waits for", func(v command.ResendView) bool {
		return !v.Partitions[0].Awaits.IsZero() && slices.ContainsFunc(v.Warnings, func(w string) bool { return strings.Contains(w, "once the stream has passed") })
	})
	accept()
	if done := awaitResend(t, c, "the resend to end", ended); len(done.Warnings) > 0 || !done.Partitions[0].Awaits.IsZero() {
		t.Errorf("at its end it is %+v, want it to wait for nothing", done)
	}
	var versions []any
	for _, m := range receive(t, servers, 1+others+3+1) {
		if *m.SessionID == "a" {
			versions = append(versions, m.ApplicationProperties["cloudEvents_aggregateversion"])
		}
	}
	if want := []any{int64(1), int64(2), int64(3), int64(4), int64(4)}; !slices.Equal(versions, want) {
		t.Errorf("the topic has versions %v, want %v", versions, want)
	}
}
