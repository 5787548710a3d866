package app

import (
	"os"
	"runtime/debug"

	"changerelay/services/publisher/internal/config"
)

// paceCollector lets the heap grow between collections, up to a limit: what is
// alive is little more than the window, so at the usual pace a publisher under
// load would collect dozens of times a second. Who sets GOGC or GOMEMLIMIT
// decides instead.
func paceCollector(c config.Config) {
	const (
		percent = 400
		base    = 32 << 20
	)
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(percent)
	// Twice the windows: what the SDK makes of messages comes on top of them.
	debug.SetMemoryLimit(base + 2*c.MaxInFlightBytes*int64(c.Partitions))
}
