package config

import (
	"testing"
	"time"

	"changerelay/services/publisher/internal/resend"
)

// Each chunk of a resend lists anew, so that it lists no more than it reads.
func TestResend_ListsNoMoreThanAChunk(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for name, tt := range map[string]struct {
		inFlight, partitions, rate int
		bytes                      int64
		chunk, chunkBytes          int
	}{
		"the usual window": {2048, 1, 0, 32 * mib, 500, 4 * mib},
		"a small window":   {100, 4, 0, 8 * mib, 25, mib / 2},
		"a rate":           {2048, 1, 7, 32 * mib, 7, 4 * mib},
	} {
		c := Config{MaxInFlight: tt.inFlight, MaxInFlightBytes: tt.bytes, Partitions: tt.partitions}
		plan, err := c.Resend(resend.Selection{}, tt.rate)
		if err != nil {
			t.Fatal(err)
		}
		if plan.Chunk != tt.chunk || plan.Listed != tt.chunk || plan.Bytes != tt.chunkBytes || plan.ListedBytes != tt.chunkBytes {
			t.Errorf("%s: got %d documents of %d bytes and %d listed keys of %d, want %d and %d of both",
				name, plan.Chunk, plan.Bytes, plan.Listed, plan.ListedBytes, tt.chunk, tt.chunkBytes)
		}
	}
}

// Who sends nothing lists as much as a copy does, and keeps it.
func TestEvents_ListAsMuchAsACopy(t *testing.T) {
	t.Parallel()
	c := Config{MaxInFlight: 100, MaxInFlightBytes: 32 << 20, Partitions: 1}
	plan, err := c.Events(resend.Selection{}, 9)
	if copied := c.Plan(time.Time{}); err != nil || plan.Listed != copied.Listed || plan.ListedBytes != copied.ListedBytes || plan.Chunk != 9 || plan.Rate != 9 {
		t.Errorf("got %+v, %v, want the list of a copy, and 9 documents a second", plan, err)
	}
}

// What a copy has in memory follows what its partition may have.
func TestPlan_TakesAQuarterOfTheWindow(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for name, tt := range map[string]struct {
		window        int64
		bytes, listed int
	}{
		"a window as small as can be": {mib, mib / 4, mib / 4},
		"a window":                    {32 * mib, 4 * mib, 8 * mib},
		"a large window":              {256 * mib, 4 * mib, 16 * mib},
	} {
		c := Config{MaxInFlightBytes: 3 * tt.window, Partitions: 3}
		if plan := c.Plan(time.Time{}); plan.Bytes != tt.bytes || plan.ListedBytes != tt.listed || plan.Listed != 0 {
			t.Errorf("%s: got %d bytes of documents and %d of keys, want %d and %d", name, plan.Bytes, plan.ListedBytes, tt.bytes, tt.listed)
		}
	}
}
