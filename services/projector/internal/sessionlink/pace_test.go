package sessionlink

import (
	"sync/atomic"
	"testing"
	"time"
)

const testLinger = 10 * time.Millisecond

// brought has a receive bring messages, one each gap, that were enqueued long ago
// or just so far apart.
func brought(p *pace, carried *atomic.Int64, messages int, each int64, gap time.Duration, age time.Duration) {
	m := p.begin(messages, each)
	defer m.end()
	var before arrival
	at := time.Unix(1e9, 0)
	for range messages {
		carried.Add(each)
		now := arrival{at: at, enqueued: at.Add(-age)}
		m.note(before, now)
		before, at = now, at.Add(gap)
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
		var carried atomic.Int64
		p := newPace(testLinger, &carried)
		brought(p, &carried, 5, 100, tt.gap, tt.age)
		m := p.begin(1, 100)
		if quiet, _ := m.linger(); quiet != tt.want {
			t.Errorf("%s: lingers %s, want %s", name, quiet, tt.want)
		}
		m.end()
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

func TestPace_AsksForWhatComesInASecond(t *testing.T) {
	t.Parallel()
	var carried atomic.Int64
	p := newPace(testLinger, &carried)
	const each = 50 << 10
	for range 50 { // 50 KiB each 50 ms: 1,000 KiB a second
		brought(p, &carried, 10, each, 50*time.Millisecond, time.Hour)
	}
	if n := p.fits(100, each); n < 18 || n > 25 {
		t.Errorf("alone: fits %d messages, want about 20", n)
	}
	others := []*measure{p.begin(10, each), p.begin(10, each), p.begin(10, each)}
	if n := p.fits(100, each); n < 4 || n > 6 {
		t.Errorf("beside three: fits %d messages, want about 5", n)
	}
	if _, most := others[0].linger(); most < 300*time.Millisecond {
		t.Errorf("beside two that expect ten messages: lingers %s at most, want what they take", most)
	}
	for _, m := range others {
		m.end()
	}
	if n := p.fits(100, 100<<20); n != 1 {
		t.Errorf("of what is far too large: fits %d, want one", n)
	}
}
