package speed

import (
	"testing"
	"time"
)

func TestGrowth_ComparesTheLastTenthWithTheFirst(t *testing.T) {
	t.Parallel()
	after := func(events int, cpu time.Duration) took { return took{events: events, client: cpu} }
	if got := growth(after(100, time.Second), after(900, 9*time.Second), after(1000, 12*time.Second)); got < 2.99 || got > 3.01 {
		t.Errorf("got %g, want 3", got)
	}
	if got := growth(after(1000, time.Second), after(1000, time.Second), after(1000, time.Second)); got != 0 {
		t.Errorf("all at once: got %g, want 0", got)
	}
}
