// Package attributes makes the application properties that a message of the
// relay has, written down once more here: benchmarks that send with the bare SDK
// must send what the publisher sends, and not use its code for it.
package attributes

import (
	"fmt"
	"time"
)

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
		"cloudEvents_position":         fmt.Sprintf("%08x%08x.82%08X", now.Unix(), version, version),
		"cloudEvents_aggregateversion": int64(version),
		"cloudEvents_time":             now.UTC().Format(time.RFC3339Nano),
		"cloudEvents_term":             int64(1),
	}
}
