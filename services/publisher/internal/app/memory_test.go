package app

import (
	"runtime/debug"
	"testing"

	"changerelay/services/publisher/internal/config"
)

func TestMemory_TheCollectorIsPacedUnlessTheEnvironmentDoesIt(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	cfg := config.Config{MaxInFlightBytes: 1 << 20, Partitions: 3}
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "off")
			paceCollector(cfg)
			if got := debug.SetGCPercent(100); got != 100 {
				t.Errorf("GOGC is %d, want what it was", got)
			}
			if got := debug.SetMemoryLimit(-1); got != limit {
				t.Errorf("the memory limit is %d, want what it was: %d", got, limit)
			}
		})
	}
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	paceCollector(cfg)
	if got := debug.SetGCPercent(100); got != 400 {
		t.Errorf("GOGC is %d, want 400", got)
	}
	if got, want := debug.SetMemoryLimit(-1), int64(32<<20+2*3<<20); got != want {
		t.Errorf("the memory limit is %d, want %d: the base and twice the windows", got, want)
	}
}
