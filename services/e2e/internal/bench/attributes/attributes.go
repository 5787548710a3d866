// Package attributes makes the application properties that a message of the
// relay has, written down once more here: benchmarks that send with the bare SDK
// must send what the publisher sends, and not use its code for it.
package attributes

import (
	"fmt"
	"time"
)

// tokenRest is the rest of a resume token behind its time, as a server writes it
// for a document whose key is a text of 26 characters.
const tokenRest = "2B022C0100296E5A100408EADEF2F67B4A2E92B6B5223AD9501746025F696400056F726465722D3030303034322F3030303030303030303030303030303030303100000004"

// Of returns the properties of an event's message.
func Of(id, aggregate, kind string, version int) map[string]any {
	now := time.Now()
	return map[string]any{
		"cloudEvents_specversion":      "1.0",
		"cloudEvents_contractversion":  "1",
		"cloudEvents_id":               id,
		"cloudEvents_source":           "/shop/events",
		"cloudEvents_type":             kind,
		"cloudEvents_subject":          aggregate,
		"cloudEvents_operation":        "insert",
		"cloudEvents_sequence":         fmt.Sprintf("%019d", version),
		"cloudEvents_position":         fmt.Sprintf("%08x%08x.82%08X%08X%s", now.Unix(), version, now.Unix(), version, tokenRest),
		"cloudEvents_aggregateversion": int64(version),
		"cloudEvents_time":             now.UTC().Format(time.RFC3339Nano),
		"cloudEvents_term":             int64(1),
	}
}
