package app

import (
	"os"
	"runtime/debug"
)

// paceCollector lets the heap grow between collections, up to a limit. For each
// session that the Service Bus client accepts it clears some 600 KiB of queues,
// so with a small live heap the usual pace would collect all the time. Who sets
// GOGC or GOMEMLIMIT decides instead.
func paceCollector() {
	const (
		percent = 400
		limit   = 110 << 20
	)
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
