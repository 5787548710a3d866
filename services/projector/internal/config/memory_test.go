package config

import (
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
		"no limit":               {0, 0, 64, 184 * mib / 6},
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

// What is redriven in the process is part of the bytes in flight.
func TestShares_AreTheBytesInFlightTogether(t *testing.T) {
	t.Parallel()
	for onGap, want := range map[string][2]int64{GapReport: {800, 0}, GapWait: {700, 100}} {
		c := Config{MaxInFlightBytes: 800, OnGap: onGap}
		if messages, parked := c.Shares(0); messages != want[0] || parked != want[1] {
			t.Errorf("ON_GAP=%s: got %d and %d, want %v", onGap, messages, parked, want)
		}
	}
}

func TestSoftLimit_IsNearTheContainersOrWhatTheProcessTakes(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for name, tt := range map[string]struct {
		set, container int64
		want           int64 // before a tenth is left
	}{
		"a container's":      {0, 512 * mib, 512 * mib},
		"none":               {0, 0, 256 * mib},
		"none, and more set": {100 * mib, 0, 672 * mib},
	} {
		c := Config{MaxInFlightBytes: tt.set, MaxSessions: 64}
		if got, want := c.softLimit(tt.container), tt.want/10*9+headroom; got < want-mib || got > want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}

func TestPaceCollector_LeavesItToWhoSetsIt(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Setenv("GOMEMLIMIT", "300MiB")
	if (&Config{}).PaceCollector() != nil || debug.SetMemoryLimit(-1) != before {
		t.Error("with GOMEMLIMIT: got a pace of our own")
	}
	if err := os.Unsetenv("GOMEMLIMIT"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOGC", "50")
	if (&Config{}).PaceCollector() != nil {
		t.Error("with GOGC: got a pace of our own")
	}
}
