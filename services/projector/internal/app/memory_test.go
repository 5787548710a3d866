package app

import (
	"math"
	"os"
	"runtime/debug"
	"testing"
)

func TestInFlightBytes_FollowTheLimitOfMemory(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for name, tt := range map[string]struct {
		set, limit int64
		sessions   int
		want       int64
	}{
		"no limit":               {0, 0, 64, 64 * mib},
		"the deployment's":       {0, 512 * mib, 64, 440 * mib / 6},
		"more sessions":          {0, 512 * mib, 1024, 320 * mib / 6},
		"hardly any memory":      {0, 64 * mib, 64, 4 * mib},
		"set, whatever is there": {10 * mib, 512 * mib, 64, 10 * mib},
	} {
		c := Config{MaxInFlightBytes: tt.set, MaxSessions: tt.sessions}
		if got := c.inFlightBytes(tt.limit); got != tt.want {
			t.Errorf("%s: got %d bytes, want %d", name, got, tt.want)
		}
	}
}

func TestMemoryLimit_IsTheOneThatIsSet(t *testing.T) {
	before := debug.SetMemoryLimit(300 << 20)
	defer debug.SetMemoryLimit(before)
	if got := memoryLimit(); got != 300<<20 {
		t.Errorf("got %d, want that of GOMEMLIMIT", got)
	}
	debug.SetMemoryLimit(math.MaxInt64)
	if got := memoryLimit(); got != containerLimit() {
		t.Errorf("got %d, want that of the container", got)
	}
}

func TestPaceCollector_LeavesItToWhoSetsIt(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Setenv("GOMEMLIMIT", "300MiB")
	if paceCollector() != nil || debug.SetMemoryLimit(-1) != before {
		t.Error("with GOMEMLIMIT: got a pace of our own")
	}
	if err := os.Unsetenv("GOMEMLIMIT"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOGC", "50")
	if paceCollector() != nil {
		t.Error("with GOGC: got a pace of our own")
	}
}
