package relay

import (
	"testing"
	"time"
)

// TestBound_IsWhatWasAcceptedInTheWindowThatStillRefuses has 100 messages
// accepted in each tenth of a second, and refusals for so long after that.
func TestBound_IsWhatWasAcceptedInTheWindowThatStillRefuses(t *testing.T) {
	t.Parallel()
	for refused, want := range map[time.Duration]float64{
		0:                      below * 1000,
		300 * time.Millisecond: below * 700,
		700 * time.Millisecond: below * 300,
	} {
		var p pace
		now := time.Unix(1000, 0)
		for range 20 {
			now = now.Add(100 * time.Millisecond)
			p.accepted(now, 100)
		}
		p.refuse(now, now, 1)
		p.refuse(now.Add(refused), now, 1)
		p.resume(now.Add(refused+100*time.Millisecond), refused+100*time.Millisecond)
		if p.rate != want {
			t.Errorf("after refusals for %s the pace is %.0f, want %.0f", refused, p.rate, want)
		}
	}
}
