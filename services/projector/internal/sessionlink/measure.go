package sessionlink

import (
	"cmp"
	"time"
)

// measure is one receive, which shows the connection's pace by the messages that
// it waits for.
type measure struct {
	*pace
	each    int64
	expects int64 // part of pace.expected
	// fresh: all that it waits for was asked for as it began. first: it is the first of
	// its session, which was granted since it has messages.
	fresh, first bool
	began        time.Time     // when messages were last asked for
	from         int64         // of carried, then
	came         int           // messages
	took         time.Duration // between messages that were waiting at the broker
	bytes        int64         // that came in that time
	last         int64         // of carried, when the last message came
	lastAt       time.Time
}

// begin begins a receive of messages of so many bytes each, of which some are
// expected; end ends it.
func (p *pace) begin(some int64, each int64) *measure {
	p.mu.Lock()
	defer p.mu.Unlock()
	each = p.weight(each)
	m := &measure{pace: p, each: each, expects: some * each, began: time.Now(), from: p.carried.Load()}
	p.receiving++
	p.expected += m.expects
	return m
}

// note notes a message that has come; before is the one before it, of this receive.
func (m *measure) note(before, now arrival) {
	m.came++
	carried := m.carried.Load()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.came == 1 && m.fresh {
		took := now.at.Sub(m.began)
		m.way = min(cmp.Or(m.way, took), took)
	}
	if !before.at.IsZero() && now.delayed(before) {
		gap := now.at.Sub(before.at)
		m.took += gap
		m.bytes += carried - m.last
		m.longest = max(m.longest, min(gap, lingerMost))
	}
	m.last, m.lastAt = carried, now.at
	m.heavy = max(now.bytes, m.heavy-m.heavy/8)
	part := min(m.each, m.expects)
	m.expects -= part
	m.expected -= part
	m.grant()
}

// linger is how long the receive waits for another message, from the last one on:
// quiet while nothing comes on the connection at all, and most while something
// does, which others may have asked for before.
func (m *measure) linger() (quiet, most time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	quiet = max(m.least, min(3*m.longest, lingerMost))
	return quiet, max(quiet, min(m.time(m.expected-m.expects), lingerMost))
}

// end ends the receive, and learns from it.
func (m *measure) end() {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.grant()
	m.receiving--
	m.expected -= m.expects
	if m.came > 0 {
		m.usual = max(float64(m.came), m.usual-m.usual/8)
	}
	switch waited := m.lastAt.Sub(m.began); {
	case m.took >= rateTime || m.bytes >= rateBytes && m.took > 0:
		m.show(m.bytes, m.took)
	case m.came == 0 && m.first && now.Sub(m.began) >= underWay:
		m.show(m.carried.Load()-m.from, now.Sub(m.began)) // it is somewhere on its way
	case m.came == 0:
	case m.first && m.fresh && waited > m.way+underWay:
		m.show(m.last-m.from, waited)
	default:
		m.rate = max(m.rate, min(2*m.rate, perSecond(m.last-m.from, waited)))
	}
}

// perSecond is how many bytes come in a second that come in a time.
func perSecond(bytes int64, in time.Duration) int64 {
	return int64(float64(bytes) / max(in, time.Microsecond).Seconds())
}

// show notes that bytes have come in a time, while more were on their way. Called with
// mu held.
func (p *pace) show(bytes int64, took time.Duration) {
	p.rate = max(p.rate+(perSecond(bytes, took)-p.rate)/4, leastRate)
}
