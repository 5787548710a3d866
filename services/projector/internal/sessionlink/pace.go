package sessionlink

import (
	"sync"
	"sync/atomic"
	"time"

	"changerelay/services/projector/internal/session"
)

const (
	// underWay is how long what all receives of a connection have asked for may take
	// to come. Renewals and settlements stand behind it on the connection.
	underWay = time.Second
	// startRate is how many bytes a connection is taken to carry in a second until it
	// has shown what it does.
	startRate = 64 << 20
	// rateBytes is how much has to come for a rate to be told.
	rateBytes = 64 << 10
	// lingerMost bounds how long a receive waits for another message.
	lingerMost = time.Second
	// clockDoubt is more than the clocks of the broker and of this machine differ by,
	// as a rule. Where they do by more, receives may linger for longer than they need.
	clockDoubt = time.Second
)

// pace is what one connection has shown of how messages come on it: how many
// bytes in a second, and how far apart. So it knows how much may be asked for,
// and how long a message that waits at the broker may take to come.
type pace struct {
	least   time.Duration
	carried *atomic.Int64 // bytes that have come

	mu      sync.Mutex
	rate    int64         // guarded by mu: bytes a second; 0 until known
	longest time.Duration // guarded by mu: of the gaps between messages that were waiting, lately
	// usual is how many messages a receive brings; guarded by mu.
	usual float64
	// expected are the bytes that receives wait for, by what is usual; guarded by mu.
	expected  int64
	receiving int // guarded by mu: how many receives wait
}

func newPace(linger time.Duration, carried *atomic.Int64) *pace {
	return &pace{least: linger, carried: carried}
}

// perSecond is how many bytes come in a second. Called with mu held.
func (p *pace) perSecond() int64 {
	if p.rate == 0 {
		return startRate
	}
	return p.rate
}

// fits is how many messages of so many bytes each come in good time, as one of
// all the receives that are under way.
func (p *pace) fits(limit int, each int64) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	part := p.perSecond() * int64(underWay) / int64(time.Second) / int64(p.receiving+1)
	return int(max(min(int64(limit), part/max(each, 1)), 1))
}

// time is how long bytes take. Called with mu held.
func (p *pace) time(bytes int64) time.Duration {
	return time.Duration(float64(bytes) / float64(p.perSecond()) * float64(time.Second))
}

// vain notes how a session was given back: with messages on their way to it, that
// came in vain, or without.
func (p *pace) vain(some bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if some {
		p.longest = min(max(2*p.longest, p.least), lingerMost)
		return
	}
	p.longest -= p.longest / 16
}

// arrival is when a message came, by our clock and by the broker's.
type arrival struct{ at, enqueued time.Time }

func arrived(m *session.Message) arrival { return arrival{time.Now(), m.EnqueuedAt} }

// delayed tells whether a message was at the broker when the one before it came,
// so that the way here made the gap between them, and not the sender: the two were
// enqueued closer to each other than they came, or this one long ago.
func (a arrival) delayed(before arrival) bool {
	return a.enqueued.Sub(before.enqueued) < a.at.Sub(before.at)/2 || before.at.Sub(a.enqueued) > clockDoubt
}

// measure is one receive, which shows the connection's pace by the messages that
// it waits for.
type measure struct {
	*pace
	expects int64         // part of pace.expected
	came    int           // messages
	took    time.Duration // between messages that were waiting at the broker
	bytes   int64         // that came in that time
	last    int64         // of carried, when the last message came
}

// begin begins a receive of messages of so many bytes each, at most limit; end
// ends it.
func (p *pace) begin(limit int, each int64) *measure {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := &measure{pace: p, expects: int64(min(float64(limit), p.usual) * float64(each))}
	p.receiving++
	p.expected += m.expects
	return m
}

// note notes a message that has come; before is the one before it, of this receive.
func (m *measure) note(before, now arrival) {
	m.came++
	carried := m.carried.Load()
	if !before.at.IsZero() && now.delayed(before) {
		gap := now.at.Sub(before.at)
		m.took += gap
		m.bytes += carried - m.last
		m.mu.Lock()
		m.longest = max(m.longest, min(gap, lingerMost))
		m.mu.Unlock()
	}
	m.last = carried
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

func (m *measure) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.receiving--
	m.expected -= m.expects
	m.usual += (float64(m.came) - m.usual) / 8
	if m.took > 0 && m.bytes >= rateBytes {
		m.rate = m.perSecond() + (m.bytes*int64(time.Second)/int64(m.took)-m.perSecond())/4
	}
}
