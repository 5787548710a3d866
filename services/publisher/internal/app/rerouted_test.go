package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/app"
	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

// byOrder is another path of the aggregate id.
func byOrder(c *config.Config) { c.FieldAggregateID = "orderId" }

// writeOrders inserts events that have their aggregate's id elsewhere; with two,
// where the default says as well.
func (s *source) writeOrders(t *testing.T, count int, two bool) {
	t.Helper()
	var documents []any
	for n := range count {
		id := fmt.Sprintf("ord-%d", n)
		s.written[id] = []int{1}
		event := bson.D{
			{Key: "orderId", Value: id},
			{Key: "version", Value: 1},
			{Key: "type", Value: "OrderPlaced"},
			{Key: "data", Value: bson.D{{Key: "n", Value: n}}},
		}
		if two {
			event = append(event, bson.E{Key: "aggregateId", Value: fmt.Sprintf("cust-%d", n%3)})
		}
		documents = append(documents, event)
	}
	if _, err := s.InsertMany(t.Context(), documents); err != nil {
		t.Fatal(err)
	}
}

// halted wants a partition to wait for an operator.
func halted(o app.Overview) bool {
	return slices.ContainsFunc(o.Streams, func(s status.Status) bool { return s.State == "halted" })
}

// TestRerouted_WhatAHaltSaysLosesNothing has the events' ids where the settings do
// not say, until one of two partitions has parked too many, or stops at the first,
// and the other one is past all of them; and does what the halt says.
func TestRerouted_WhatAHaltSaysLosesNothing(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(*config.Config){
		"parked":  func(c *config.Config) { c.ParkLimit = 3 },
		"stopped": func(c *config.Config) { c.OnUnmappable = "stop" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := testserver.Start(t)
			source := events(t, servers)
			p := run(t, configured(servers, split(2), patient, at))
			p.awaitOverview(t, "both partitions to be led", leads(2))
			source.writeOrders(t, 10, false)
			p.awaitOverview(t, "one to halt, and the other to pass all", func(o app.Overview) bool {
				return halted(o) && slices.ContainsFunc(o.Streams, func(s status.Status) bool { return s.State == "publishing" && s.Read == 10 && s.InFlight == 0 })
			})
			testserver.Eventually(t, "the places to be kept", func() bool {
				n, err := state(t, servers, "resume_tokens").CountDocuments(t.Context(), bson.D{{Key: "token", Value: bson.D{{Key: "$ne", Value: nil}}}})
				return err == nil && n >= 1
			})
			if err := p.quit(); err != nil {
				t.Fatal(err)
			}
			mended := configured(servers, split(2), patient, at, byOrder)
			if _, err := lines(t, mended, "parked", "replay", "--all"); err == nil || !strings.Contains(err.Error(), "publisher checkpoint accept") {
				t.Errorf("parked replay = %v, want it to wait until the settings are taken over", err)
			}
			p = run(t, mended)
			p.awaitOverview(t, "the settings to be refused", func(o app.Overview) bool {
				return strings.Contains(o.LastError, "FIELD_AGGREGATE_ID was") && strings.Contains(o.LastError, "publisher checkpoint accept")
			})
			if err := p.quit(); err != nil {
				t.Fatal(err)
			}
			if _, err := say[command.MoveView](t, mended, "checkpoint", "accept", "--why", "x", "--partition", "1"); err == nil || !strings.Contains(err.Error(), "all of them") {
				t.Errorf("accept --partition 1 = %v, want it refused", err)
			}
			if err := runCommand(t, mended, &syncBuffer{}, "checkpoint", "accept", "--why", "the path was wrong"); err != nil {
				t.Fatal(err)
			}
			replayed, err := lines(t, mended, "parked", "replay", "--all")
			for _, one := range replayed {
				if one.Outcome != "replayed" && !strings.Contains(one.Error, "start the publishers") {
					t.Errorf("parked replay says %+v, %v, want it replayed, or left to the publishers", one, err)
				}
			}
			run(t, mended).awaitOverview(t, "both partitions to go on", leads(2))
			if left, err := lines(t, mended, "parked", "replay", "--all"); err != nil {
				t.Errorf("parked replay beside the publishers says %+v, %v", left, err)
			}
			source.wantAll(t, source.drain(t, servers))
		})
	}
}

// TestRerouted_ARollingReleaseLosesNothing has an instance of another path come
// beside one that leads, and that one go.
func TestRerouted_ARollingReleaseLosesNothing(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	old := run(t, configured(servers, named("x"), split(2), patient))
	old.awaitOverview(t, "x to lead both", leads(2))
	source.writeOrders(t, 1, true)
	old.awaitOverview(t, "the event to be sent", func(o app.Overview) bool { return o.Sent == 1 })
	fresh := configured(servers, named("y"), split(2), patient, byOrder)
	y := run(t, fresh)
	y.awaitOverview(t, "y to stand aside", halted)
	old.awaitOverview(t, "x to lead both again", leads(2))
	source.writeOrders(t, 16, true)
	if err := old.quit(); err != nil {
		t.Fatal(err)
	}
	y.awaitOverview(t, "y to send nothing", func(o app.Overview) bool { return halted(o) && o.Sent == 0 })
	testserver.Eventually(t, "the settings to be accepted", func() bool {
		return runCommand(t, fresh, &syncBuffer{}, "checkpoint", "accept", "--why", "aggregates are orders now") == nil
	})
	y.awaitOverview(t, "y to lead both", leads(2))
	source.writeOrders(t, 30, true)
	y.awaitOverview(t, "what came since to be sent", func(o app.Overview) bool { return o.Sent >= 14 })
}

// TestRerouted_NothingGoesOnUntilAllPartitionsAre has the command that was to change
// both partitions die after the first of them.
func TestRerouted_NothingGoesOnUntilAllPartitionsAre(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	source := events(t, servers)
	before, after := configured(servers, split(2), patient), configured(servers, split(2), patient, byOrder)
	p := run(t, before)
	p.awaitOverview(t, "both partitions to be led", leads(2))
	source.writeOrders(t, 6, true)
	p.awaitOverview(t, "the events to be sent", func(o app.Overview) bool { return o.Sent == 6 })
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
	records := state(t, servers, "streams")
	first := bson.D{{Key: "_id", Value: "shop.events-0of2"}}
	if _, err := records.UpdateOne(t.Context(), first, bson.D{{Key: "$set", Value: bson.D{{Key: "settings.FIELD_AGGREGATE_ID", Value: "orderId"}}}}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]config.Config{"the old settings": before, "the new ones": after} {
		p := run(t, c)
		p.awaitOverview(t, name+" to fit no partition", func(o app.Overview) bool {
			return len(o.Led) == 0 && halted(o) && strings.Contains(o.LastError, "FIELD_AGGREGATE_ID was")
		})
		if err := p.quit(); err != nil {
			t.Fatal(err)
		}
	}
	if err := runCommand(t, after, &syncBuffer{}, "checkpoint", "accept", "--why", "once more"); err != nil {
		t.Fatal(err)
	}
	run(t, after).awaitOverview(t, "both to be led", leads(2))
}
