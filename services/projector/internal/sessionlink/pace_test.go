package sessionlink

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const testLinger = 10 * time.Millisecond

// pass has time pass in a bubble.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble
}

// brought has a receive bring messages, one each gap, that were enqueued so long before.
// It is called in a bubble.
func brought(p *pace, carried *atomic.Int64, messages int, each int64, gap time.Duration, age time.Duration) {
	m := p.begin(int64(messages), each)
	m.fresh = true
	defer m.end()
	var before arrival
	for range messages {
		pass(gap)
		carried.Add(each)
		at := time.Now()
		now := arrival{at: at, enqueued: at.Add(-age), bytes: each}
		m.note(before, now)
		before = now
	}
}

func TestPace_LingersByTheGapsOfWhatWasWaiting(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		gap, age, want time.Duration
	}{
		"messages that waited come slowly":     {40 * time.Millisecond, time.Hour, 120 * time.Millisecond},
		"they come slowly as they are sent":    {40 * time.Millisecond, 5 * time.Millisecond, testLinger},
		"messages that waited come at once":    {time.Millisecond, time.Hour, testLinger},
		"they come very slowly, up to a bound": {time.Minute, time.Hour, lingerMost},
	} {
		synctest.Test(t, func(t *testing.T) {
			var carried atomic.Int64
			p := newPace(testLinger, &carried)
			brought(p, &carried, 5, 100, tt.gap, tt.age)
			m := p.begin(1, 100)
			if quiet, _ := m.linger(); quiet != tt.want {
				t.Errorf("%s: lingers %s, want %s", name, quiet, tt.want)
			}
			m.end()
		})
	}
}

// A session that was given back with messages on their way has every other linger
// longer, until sessions are given back without.
func TestPace_LearnsFromWhatCameInVain(t *testing.T) {
	t.Parallel()
	p := newPace(testLinger, &atomic.Int64{})
	m := p.begin(1, 1)
	defer m.end()
	p.vain(true)
	p.vain(true)
	if quiet, _ := m.linger(); quiet != 60*time.Millisecond {
		t.Errorf("after two: lingers %s, want 60 ms", quiet)
	}
	for range 100 {
		p.vain(false)
	}
	if quiet, _ := m.linger(); quiet != testLinger {
		t.Errorf("after a hundred without: lingers %s, want %s again", quiet, testLinger)
	}
}

// slow is a pace of a connection that carries 50 KiB each 50 ms: 1,000 KiB a second.
// It is called in a bubble.
func slow(carried *atomic.Int64) *pace {
	p := newPace(testLinger, carried)
	for range 50 {
		brought(p, carried, 10, 50<<10, 50*time.Millisecond, time.Hour)
	}
	return p
}

func TestPace_AsksForWhatComesInGoodTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var carried atomic.Int64
		const each = 5 << 10 // the way, of 50 ms, and 250 ms besides: 300 KiB
		p := slow(&carried)
		if n := p.fits(100, each); n < 55 || n > 65 {
			t.Errorf("alone: fits %d messages, want about 60", n)
		}
		others := []*measure{p.begin(10, each), p.begin(10, each), p.begin(10, each)}
		if n := p.fits(100, each); n < 13 || n > 17 {
			t.Errorf("beside three: fits %d messages, want about 15", n)
		}
		if _, most := others[0].linger(); most < 90*time.Millisecond {
			t.Errorf("beside two that expect ten messages: lingers %s at most, want what they take", most)
		}
		for _, m := range others {
			m.end()
		}
		if n := p.fits(100, 100<<20); n != 0 {
			t.Errorf("of what is far too large: fits %d, want none", n)
		}
	})
}

// What a receiver has asked for ahead comes before what others ask for now, and is
// part of what comes in good time.
func TestPace_CountsWhatIsAskedForAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var carried atomic.Int64
		const each = 5 << 10
		p := slow(&carried)
		alone := p.fits(1000, each)
		p.ahead(0, 100*each)
		if n := p.fits(1000, each); n != alone/2 {
			t.Errorf("beside one that asked ahead: fits %d messages, want half of %d", n, alone)
		}
		m := p.begin(1, each)
		if _, most := m.linger(); most < 400*time.Millisecond {
			t.Errorf("behind 500 KiB: lingers %s at most, want what they take", most)
		}
		m.end()
		p.ahead(100*each, 0)
		if n := p.fits(1000, each); n != alone {
			t.Errorf("after it: fits %d messages, want %d", n, alone)
		}
	})
}

// Between messages that were asked for before and those that were asked for just now
// there may be a round trip.
func TestReceiver_WaitsForWhatItHasJustAskedFor(t *testing.T) {
	t.Parallel()
	asked := time.Unix(1e9, 0)
	r := &receiver{asked: asked, trip: 40 * time.Millisecond}
	if got := r.soonest(asked.Add(10 * time.Millisecond)); got != 30*time.Millisecond {
		t.Errorf("10 ms later: %s, want 30 ms", got)
	}
	if got := r.soonest(asked.Add(time.Second)); got > 0 {
		t.Errorf("a second later: %s, want none", got)
	}
}
