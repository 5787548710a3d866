package relay_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/relay/relaytest"
)

// sized names aggregates whose changes have so much data.
func sized(bytes int) func(n int) string {
	return func(n int) string { return fmt.Sprintf("%d bytes %d", bytes, n) }
}

// TestNarrow_MessagesThatShareANarrowLinkAreSentAndNotParked has a backlog of as many
// aggregates, of which the window holds sixteen, for a link over which one message of
// a megabyte is sent in time, and four at once are not.
func TestNarrow_MessagesThatShareANarrowLinkAreSentAndNotParked(t *testing.T) {
	t.Parallel()
	const rate, during = 100_000, 15 * time.Minute
	for size, mixed := range map[int]bool{1_000_000: false, 999_000: true, 200_000: false} {
		t.Run(fmt.Sprintf("%d bytes, mixed %v", size, mixed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(func(c *relay.Config) {
					c.Mixed, c.SendTimeout, c.Patience = mixed, 15*time.Second, 10*time.Minute
					c.MaxInFlightBytes = int64(16 * (size + 4<<10))
				})
				r.topic.Link = &relaytest.Link{Rate: rate}
				r.add(1, 1+int(rate*during.Seconds())/size, sized(size))
				r.start(t)
				time.Sleep(during)
				if kept := r.parks.Kept(); len(kept) != 0 {
					t.Errorf("parked %d, the first because %s: want none", len(kept), kept[0].Reason)
				}
				want := int64(0.9*rate*during.Seconds()) / int64(size)
				if got := r.counters.Sent(); got < want {
					t.Errorf("sent %d after %d retries, want %d, nine tenths of what the link takes", got, r.counters.Retries(), want)
				}
				_ = r.stop()
			})
		})
	}
}

// TestNarrow_ALargeMessageHasItsTurnAmongSmallOnes has more small ones for all the time
// that would fit in beside others while the large one does not.
func TestNarrow_ALargeMessageHasItsTurnAmongSmallOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *relay.Config) { c.SendTimeout = 15 * time.Second })
		r.topic.Link = &relaytest.Link{Rate: 100_000}
		r.add(1, 199, sized(10_000))
		r.add(200, 200, sized(1_000_000))
		r.add(201, 1_000, sized(10_000))
		r.start(t)
		time.Sleep(time.Minute)
		if !r.topic.Has(200) || r.counters.Retries() != 0 {
			t.Errorf("of %d messages that were sent the large one is %v with %d retries, want it in its turn", r.counters.Sent(), r.topic.Has(200), r.counters.Retries())
		}
		_ = r.stop()
	})
}
