package config

import (
	"runtime/debug"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

func TestInFlightBytes_FollowTheLimitOfMemory(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for name, tt := range map[string]struct {
		set, limit int64
		partitions int
		want       int64
	}{
		"no limit":                 {0, 0, 1, 32 * mib},
		"no limit, four":           {0, 0, 4, (256*mib/5*4 - 96*mib) * 4 / 9},
		"the deployment's":         {0, 512 * mib, 1, 32 * mib},
		"the deployment's, four":   {0, 512 * mib, 4, 128 * mib},
		"the deployment's, eight":  {0, 512 * mib, 8, (512*mib/5*4 - 160*mib) * 4 / 9},
		"hardly any memory":        {0, 48 * mib, 1, mib},
		"hardly any memory, three": {0, 48 * mib, 3, 3 * mib},
		"set, whatever is there":   {100 * mib, 64 * mib, 8, 100 * mib},
	} {
		c := Config{MaxInFlightBytes: tt.set, Partitions: tt.partitions}
		if got := c.inFlightBytes(tt.limit); got > tt.want || got < tt.want-16*int64(tt.partitions) {
			t.Errorf("%s: got %d bytes, want %d", name, got, tt.want)
		}
	}
}

func TestWindowBytes_OfAllPartitionsAreWhatTheProcessMayHave(t *testing.T) {
	t.Parallel()
	c := Config{MaxInFlightBytes: 8 << 20, Partitions: 4}
	if got := c.WindowBytes(); got != 2<<20 {
		t.Errorf("got %d bytes in each of four windows, want a quarter of 8 MiB", got)
	}
}

// What a resend keeps of the stream is part of the window's memory.
func TestKeptBytes_ArePartOfTheWindow(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for window, want := range map[int64]int{mib: mib / 4, 32 * mib: 8 * mib, 256 * mib: 16 * mib} {
		c := Config{MaxInFlightBytes: 3 * window, Partitions: 3}
		if got := c.KeptBytes(); got != want {
			t.Errorf("of a window of %d bytes, %d are kept beside a resend, want %d", window, got, want)
		}
		if got, most := c.Stream(new(mongo.Client)).ReadBytes, min(want/2, 4*mib); got != most {
			t.Errorf("of a window of %d bytes, %d are read at once, want %d, so that two reads are kept", window, got, most)
		}
	}
}

func TestSoftLimit_StaysBelowTheContainers(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for name, tt := range map[string]struct {
		bytes, container int64
		partitions       int
		want             int64
	}{
		"no container":                    {32 * mib, 0, 1, 256 * mib / 5 * 4},
		"no container, large windows":     {128 * mib, 0, 4, 368 * mib},
		"one with room":                   {32 * mib, 512 * mib, 1, 104 * mib},
		"one with room, four":             {128 * mib, 512 * mib, 4, 368 * mib},
		"one that the windows would fill": {512 * mib, 512 * mib, 1, 512 * mib / 5 * 4},
	} {
		c := Config{MaxInFlightBytes: tt.bytes, Partitions: tt.partitions}
		if got := c.softLimit(tt.container); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}

func TestPaceCollector_PacesUnlessTheEnvironmentDoesIt(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	c := Config{MaxInFlightBytes: 3 << 20}
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "off")
			c.PaceCollector()
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
	c.PaceCollector()
	if got := debug.SetGCPercent(100); got != 400 {
		t.Errorf("GOGC is %d, want 400", got)
	}
	if got, want := debug.SetMemoryLimit(-1), c.softLimit(containerLimit()); got != want {
		t.Errorf("the memory limit is %d, want %d", got, want)
	}
}
