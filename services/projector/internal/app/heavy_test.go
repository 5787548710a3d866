package app_test

import (
	"fmt"
	"strings"
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/sandboxtest"
)

// uncompressed is an event's message with its data as it is.
func uncompressed(t *testing.T, e contract.Event) contract.Message {
	t.Helper()
	m, err := contract.Encode(e, contract.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Messages of many times the budget go through it, each once and in order, with
// either receiver.
func TestHeavy_HeavyMessagesGoThroughASmallBudget(t *testing.T) {
	t.Parallel()
	for _, receiver := range []string{"amqp", "sdk"} {
		t.Run(receiver, func(t *testing.T) {
			t.Parallel()
			client, database := servers.Mongo(t, nil)
			topic := "heavy-" + receiver
			const aggregates, versions = 8, 12
			for n := range int64(versions) {
				for a := range aggregates {
					data := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 150<<10))
					e := event(fmt.Sprintf("order-%d", a), n+1, "Happened", data)
					sandboxtest.Send(t, servers, topic, uncompressed(t, e))
				}
			}
			cfg := configured(t, topic, database)
			cfg.Receiver, cfg.MaxInFlightBytes = receiver, 1<<20
			p := start(t, cfg, parse(t))
			db := client.Database(database)
			until(t, "everything is applied", func() bool { return complete(t, db, aggregates, versions) })
			checkOrder(t, db, versions)
			until(t, "everything is completed", func() bool { return p.Status().Completed >= aggregates*versions })
		})
	}
}
