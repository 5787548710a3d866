package sessionlink

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// windowOf is how many bytes may be under way.
func windowOf(p *pace) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.window()
}

func TestPace_StartsSmallAndGrowsWithWhatIsCarried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var carried atomic.Int64
		p := newPace(testLinger, &carried)
		if w := windowOf(p); w > 64<<10 {
			t.Errorf("%d bytes may be under way of what nothing is known, want 64 KiB at most", w)
		}
		rounds := 0
		for ; windowOf(p) < 4<<20 && rounds < 100; rounds++ {
			// All of what may be asked for comes together, a round trip later.
			brought(p, &carried, 1, windowOf(p), 5*time.Millisecond, time.Hour)
		}
		if rounds > 10 {
			t.Errorf("4 MiB may be under way after %d round trips, want it to double with each", rounds)
		}
	})
}

// One message at a time shows how much a connection carries.
func TestPace_LearnsFromSmallReceives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var carried atomic.Int64
		p := newPace(testLinger, &carried)
		for range 100 { // 300 KB in a second
			brought(p, &carried, 1, 3_000, 10*time.Millisecond, time.Hour)
		}
		if w := windowOf(p); w < 60_000 || w > 120_000 {
			t.Errorf("%d bytes may be under way, want what comes in some 250 ms: 75 KB", w)
		}
	})
}

// The first receive of a session, whose messages wait, that brings none in its time
// shows by what came for others how little comes.
func TestPace_LearnsFromAReceiveThatRanOutOfTime(t *testing.T) {
	t.Parallel()
	for first, most := range map[bool]int64{true: 110_000, false: 1 << 40} {
		synctest.Test(t, func(t *testing.T) {
			var carried atomic.Int64
			p := newPace(testLinger, &carried)
			p.rate = 64 << 20
			for range 30 {
				m := p.begin(1, 1000)
				m.fresh, m.first = true, first
				pass(5 * time.Second)
				carried.Add(5 * 300_000)
				m.end()
			}
			if w := windowOf(p); w > most || !first && w < 16<<20 {
				t.Errorf("first %t: %d bytes may be under way, want no more than %d, and as before where it may have been empty", first, w, most)
			}
		})
	}
}

// A session's first message that stands long behind those of others shows the same.
func TestPace_LearnsFromAMessageThatIsLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var carried atomic.Int64
		p := newPace(testLinger, &carried)
		p.rate, p.way = 64<<20, 5*time.Millisecond
		for range 30 {
			m := p.begin(1, 1000)
			m.fresh, m.first = true, true
			pass(2 * time.Second)
			carried.Add(2 * 300_000)
			m.note(arrival{}, arrival{at: time.Now(), bytes: 1000})
			m.end()
		}
		if w := windowOf(p); w > 110_000 {
			t.Errorf("%d bytes may be under way, want what comes in some 250 ms: 75 KB", w)
		}
	})
}
