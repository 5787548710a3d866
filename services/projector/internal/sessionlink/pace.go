package sessionlink

import (
	"container/list"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"changerelay/services/projector/internal/session"
)

const (
	// underWay is how long what all receives of a connection have asked for may take
	// to come, beside the way. Renewals and settlements stand behind it on the connection.
	underWay = 250 * time.Millisecond
	// startRate is how many bytes a connection is taken to carry in a second until it
	// has shown what it does, and leastRate how many it is at least taken to carry.
	startRate = 256 << 10
	leastRate = 16 << 10
	// rateBytes is how much has to come, or rateTime how long it has to take, for a rate
	// to be told.
	rateBytes = 64 << 10
	rateTime  = 100 * time.Millisecond
	// wayMost bounds what is taken for the way of messages alone.
	wayMost = time.Second
	// lingerMost bounds how long a receive waits for another message.
	lingerMost = time.Second
	// clockDoubt is more than the clocks of the broker and of this machine differ by,
	// as a rule. Where they do by more, receives may linger for longer than they need.
	clockDoubt = time.Second
)

// pace is what one connection has shown of how messages come on it: how many
// bytes in a second, and how far apart. So it knows how much may be asked for,
// and how long a message that waits at the broker may take to come.
//
// It starts small. While what is asked for comes in good time, and is not much less
// than what may be, the rate grows by what came; once messages stand behind each
// other, it is how fast they come.
type pace struct {
	least   time.Duration
	carried *atomic.Int64 // bytes that have come

	mu      sync.Mutex
	rate    int64         // guarded by mu: bytes a second
	way     time.Duration // guarded by mu: the least that a message took to come once it was asked for; 0 until known
	longest time.Duration // guarded by mu: of the gaps between messages that were waiting, lately
	// usual is about the most messages that receives bring lately; guarded by mu.
	usual float64
	// heavy is about the most bytes that a message has lately; 0 until one has come.
	// Guarded by mu.
	heavy int64
	// expected are the bytes that receives wait for, and those that were asked for
	// ahead; guarded by mu.
	expected  int64
	receiving int        // guarded by mu: how many receivers have asked
	waiting   *list.List // guarded by mu: of *turn, the longest waiting first
	// idleFrom is what had been carried when somebody who waits last looked, and
	// idleSince since when; guarded by mu.
	idleFrom  int64
	idleSince time.Time
}

func newPace(linger time.Duration, carried *atomic.Int64) *pace {
	return &pace{least: linger, carried: carried, rate: startRate, usual: 1, waiting: list.New()}
}

// window is how many bytes may be under way. Called with mu held.
func (p *pace) window() int64 {
	return int64(float64(p.rate) * (underWay + min(p.way, wayMost)).Seconds())
}

// fits is how many messages of so many bytes each come in good time, as one of
// all the receives that are under way; 0 where not even one does.
func (p *pace) fits(limit int, each int64) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int(min(int64(limit), p.share()/max(each, 1)))
}

// share is what one more receive may ask for. Called with mu held.
func (p *pace) share() int64 { return p.window() / int64(p.receiving+1) }

// credit is how many messages a receive asks for that expects some: at least one more.
func (p *pace) credit(some int, each int64) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(some+1, int(max(p.share(), p.window()/8)/max(each, 1)))
}

// underWay is how many bytes have come, and how many will have when all that is
// expected has.
func (p *pace) underWay() (carried, then int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	carried = p.carried.Load()
	return carried, carried + p.expected
}

// weight is what a message may weigh that a receiver takes to weigh so much: no more
// than those that come. Called with mu held.
func (p *pace) weight(each int64) int64 {
	if p.heavy > 0 {
		return min(each, p.heavy)
	}
	return each
}

// expects is how many messages a receive of at most limit may bring, by what is usual.
func (p *pace) expects(limit int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return min(limit, int(math.Ceil(p.usual)))
}

// ahead notes that what one receiver has asked for ahead of its next receive was
// some bytes, and is others now.
func (p *pace) ahead(before, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected += now - before
	p.receiving += int(min(now, 1)) - int(min(before, 1))
	p.grant()
}

// time is how long bytes take. Called with mu held.
func (p *pace) time(bytes int64) time.Duration {
	return time.Duration(float64(bytes) / float64(p.rate) * float64(time.Second))
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

// arrival is when a message came, by our clock and by the broker's, and its size.
type arrival struct {
	at, enqueued time.Time
	bytes        int64
}

// besideBody is more than what a message has beside its body, as a rule.
const besideBody = 1 << 10

func arrived(m *session.Message) arrival {
	return arrival{time.Now(), m.EnqueuedAt, int64(len(m.Body)) + besideBody}
}

// delayed tells whether a message was at the broker when the one before it came,
// so that the way here made the gap between them, and not the sender: the two were
// enqueued closer to each other than they came, or this one long ago.
func (a arrival) delayed(before arrival) bool {
	return a.enqueued.Sub(before.enqueued) < a.at.Sub(before.at)/2 || before.at.Sub(a.enqueued) > clockDoubt
}
