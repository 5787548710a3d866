package stream

import (
	"testing"

	"changerelay/services/publisher/internal/config"
)

func TestLead_APartitionHasItsShareOfTheBytesInFlight(t *testing.T) {
	t.Parallel()
	s := &Stream{config: config.Config{MaxInFlightBytes: 8 << 20, Partitions: 4}}
	if got := s.relayConfig(1, 0).MaxInFlightBytes; got != 2<<20 {
		t.Errorf("got a window of %d bytes, want a quarter of 8 MiB", got)
	}
}
