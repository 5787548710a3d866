package app_test

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// writeAs inserts versions of an aggregate under one spelling of its id.
func (s *source) writeAs(t *testing.T, id any, first, last int) {
	t.Helper()
	for version := first; version <= last; version++ {
		if _, err := s.InsertOne(t.Context(), bson.D{
			{Key: "_id", Value: bson.NewObjectIDFromTimestamp(time.Now().Add(-time.Hour))}, {Key: "aggregateId", Value: id}, {Key: "version", Value: version}, {Key: "type", Value: "OrderPlaced"},
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSpelling_ACopyThatCannotBeInOrderHaltsBeforeTheFirstOfItsAggregate has an aggregate
// whose id was an ObjectId, and is a string from some version on.
func TestSpelling_ACopyThatCannotBeInOrderHaltsBeforeTheFirstOfItsAggregate(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	id := bson.NewObjectID()
	source.writeAs(t, id, 1, 3)
	source.writeAs(t, id.Hex(), 4, 6)
	c := configured(servers, func(c *config.Config) { c.StartAt = "snapshot" })
	p := run(t, c)
	shown := p.await(t, "the copy to halt", func(s status.Status) bool { return s.State == "halted" })
	for _, want := range []string{"aggregate ids of several types", id.Hex(), "version 6 under an id of type string", "version 1 under one of type objectID", "--give-up-copy"} {
		if !strings.Contains(shown.LastError, want) {
			t.Errorf("last error is %q, without %q", shown.LastError, want)
		}
	}
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	if sent := p.counted(t); sent != 0 {
		t.Errorf("%d events were sent, want none of the aggregate", sent)
	}
	source.writeAs(t, id.Hex(), 1, 3)
	if _, err := source.DeleteMany(t.Context(), bson.D{{Key: "aggregateId", Value: id}}); err != nil {
		t.Fatal(err)
	}
	source.written[id.Hex()] = []int{1, 2, 3, 4, 5, 6}
	run(t, c).await(t, "the copy to go on", func(s status.Status) bool { return leading(s) && s.Copy == nil && s.Sent >= 6 })
	source.wantAll(t, source.drain(t, servers))
}

// TestSpelling_ACopyAlongTwoTypesThatIsInOrderIsMade has the type that sorts first come first.
func TestSpelling_ACopyAlongTwoTypesThatIsInOrderIsMade(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	source.writeAs(t, 42, 1, 3)
	source.writeAs(t, "42", 4, 6)
	source.written["42"] = []int{1, 2, 3, 4, 5, 6}
	run(t, configured(servers, func(c *config.Config) { c.StartAt = "snapshot" })).
		await(t, "the copy to end", func(s status.Status) bool { return leading(s) && s.Copy == nil && s.Sent >= 6 })
	source.wantAll(t, source.drain(t, servers))
}

// TestSpelling_ACopyThatMayHavePassedAnEarlierVersionHalts has the type that sorts first
// come first, as late as the copy.
func TestSpelling_ACopyThatMayHavePassedAnEarlierVersionHalts(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	if _, err := source.InsertOne(t.Context(), bson.D{
		{Key: "aggregateId", Value: 42}, {Key: "version", Value: 1}, {Key: "type", Value: "OrderPlaced"},
	}); err != nil {
		t.Fatal(err)
	}
	source.writeAs(t, "42", 2, 2)
	p := run(t, configured(servers, func(c *config.Config) { c.StartAt, c.HealMargin = "snapshot", time.Hour }))
	shown := p.await(t, "the copy to halt", func(s status.Status) bool { return s.State == "halted" })
	if !strings.Contains(shown.LastError, "which the copy has passed") {
		t.Errorf("last error is %q, want it to say that the copy has passed the earlier one", shown.LastError)
	}
}

// TestSpelling_AResendThatCannotBeInOrderWaits asks for all of a collection like that.
func TestSpelling_AResendThatCannotBeInOrderWaits(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	p := run(t, configured(servers))
	p.await(t, "the publisher to lead", leading)
	id := bson.NewObjectID()
	source.writeAs(t, id, 1, 3)
	source.writeAs(t, id.Hex(), 4, 6)
	p.await(t, "the events to be sent", sent(6))
	if _, err := resends(t, configured(servers), "--all", "--group", "g", "--why", "test"); err != nil {
		t.Fatal(err)
	}
	testserver.Eventually(t, "the log to say why nothing is resent", func() bool {
		return strings.Contains(p.log.String(), "resend waits") && strings.Contains(p.log.String(), "which sorts behind it")
	})
	if got := p.Sent(); got != 6 {
		t.Errorf("%d events were sent, want none again", got)
	}
}
