package app_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/publisher/internal/app"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/testserver"
)

// change sets a field of the record of one partition.
func change(t *testing.T, servers testserver.Servers, partition, field string, value any) {
	t.Helper()
	result, err := state(t, servers, "streams").UpdateByID(t.Context(), partition, bson.D{{Key: "$set", Value: bson.D{{Key: field, Value: value}}}})
	if err != nil || result.MatchedCount != 1 {
		t.Fatalf("change the record of %s: %v, %v", partition, result, err)
	}
}

// begun has a publisher of several partitions make all of them.
func begun(t *testing.T, c config.Config) {
	t.Helper()
	p := run(t, c)
	p.awaitOverview(t, "all partitions to be led", leads(c.Partitions))
	if err := p.quit(); err != nil {
		t.Fatal(err)
	}
}

// TestAside_WhatCannotBeComparedStaysAsItWas has an instance stand aside for what
// another partition's record says, when that record cannot be read any more.
func TestAside_WhatCannotBeComparedStaysAsItWas(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, split(2), patient)
	begun(t, c)
	const other = "shop.events-1of2"
	change(t, servers, other, "settings.FIELD_AGGREGATE_ID", "orderId")
	p := run(t, c)
	p.awaitOverview(t, "it to stand aside from both", func(o app.Overview) bool {
		return len(o.Led) == 0 && strings.Contains(o.Streams[0].LastError, other) && o.Streams[1].State == "halted"
	})
	change(t, servers, other, "partitions", "two")
	testserver.Eventually(t, "it to find out nothing", func() bool { return strings.Contains(p.log.String(), "settings not compared") })
	p.awaitOverview(t, "it to stand aside as before", func(o app.Overview) bool {
		return o.Streams[0].State == "halted" && strings.Contains(o.Streams[0].LastError, "FIELD_AGGREGATE_ID was")
	})
	change(t, servers, other, "partitions", 2)
	change(t, servers, other, "settings.FIELD_AGGREGATE_ID", "aggregateId")
	p.awaitOverview(t, "it to lead both", leads(2))
}

// TestAside_WhatCannotBeComparedIsNotLeftToOthers has two instances stand aside from
// one partition of three, and the one that leads nothing unable to read the third.
func TestAside_WhatCannotBeComparedIsNotLeftToOthers(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	c := configured(servers, split(3), patient)
	begun(t, c)
	change(t, servers, "shop.events-1of3", "settings.SERVICEBUS_TOPIC", "another")
	first := run(t, c)
	first.awaitOverview(t, "the first to lead what fits", func(o app.Overview) bool { return slices.Equal(o.Led, []int{0, 2}) })
	aside := bson.D{{Key: "member", Value: "z"}, {Key: "aside", Value: bson.A{1}}}
	second := configured(servers, split(3), patient, named("z"))
	run(t, second)
	members := state(t, servers, "publisher_instances")
	testserver.Eventually(t, "the second to stand aside from the same", func() bool {
		n, err := members.CountDocuments(t.Context(), aside)
		return err == nil && n == 1
	})
	change(t, servers, "shop.events-2of3", "partitions", "three")
	for range 2 { // an announcement that was under way, and one made after a look
		var before, now struct{ ExpiresAt time.Time }
		if err := members.FindOne(t.Context(), aside).Decode(&before); err != nil {
			t.Fatalf("the second stands aside otherwise: %v", err)
		}
		testserver.Eventually(t, "the second to announce itself again", func() bool {
			err := members.FindOne(t.Context(), bson.D{{Key: "member", Value: "z"}}).Decode(&now)
			return err == nil && now.ExpiresAt.After(before.ExpiresAt)
		})
	}
	if n, err := members.CountDocuments(t.Context(), aside); n != 1 || err != nil {
		t.Errorf("the second stands aside otherwise than from the one that it does not fit, %v", err)
	}
}
