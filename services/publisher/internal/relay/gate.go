package relay

import (
	"context"
	"sync"
	"time"

	"changerelay/services/publisher/internal/backoff"
)

// Pauses of the gate.
const (
	firstPause    = 100 * time.Millisecond
	longestPause  = 30 * time.Second
	throttlePause = 2 * time.Second // Service Bus asks for 2 to 10 seconds
	// steady is how long the gate must have been open for the next outage to
	// begin with the first pause again.
	steady = 5 * time.Second
)

// Outage is a time during which nothing can be sent.
type Outage struct {
	Class Class
	Err   error
	// Since is when it began, by the local clock; zero when there is no outage.
	Since time.Time
}

// gate holds all senders back while sending fails. After a pause it lets a
// single one try: hundreds of lanes must not hammer a topic that is in trouble.
type gate struct {
	mu      sync.Mutex
	outage  Outage // guarded by mu; the gate is closed while Since is set
	count   int64  // of outages
	until   time.Time
	probing bool
	pauses  backoff.Backoff
	opened  time.Time
	changed chan struct{} // closed, and replaced, when the gate changes
}

func newGate() *gate {
	return &gate{
		pauses:  backoff.Backoff{Initial: firstPause, Max: longestPause},
		changed: make(chan struct{}),
	}
}

// ticket is the right to one send. It must be handed back to done.
type ticket struct {
	count int64
	probe bool
}

// pass waits until the holder may send.
func (g *gate) pass(ctx context.Context) (ticket, error) {
	for {
		g.mu.Lock()
		if g.outage.Since.IsZero() {
			defer g.mu.Unlock()
			return ticket{count: g.count}, nil
		}
		pause := time.Until(g.until)
		if !g.probing && pause <= 0 {
			g.probing = true
			defer g.mu.Unlock()
			return ticket{count: g.count, probe: true}, nil
		}
		changed := g.changed
		if g.probing {
			pause = longestPause
		}
		g.mu.Unlock()
		if err := sleep(ctx, pause, changed); err != nil {
			return ticket{}, err
		}
	}
}

// done takes the ticket back with the send's outcome. A nil failure is a send
// that worked; one that the message alone is to blame for counts as such. It
// returns the pause that the outcome calls for: 0 when it calls for none, or
// when it belongs to an outage that is known already.
func (g *gate) done(t ticket, failure *SendError) time.Duration {
	if failure != nil && failure.Class == TooLarge {
		failure = nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case failure == nil && t.probe:
		g.outage, g.probing, g.opened = Outage{}, false, time.Now()
		g.announce()
		return 0
	case failure == nil:
		return 0
	case t.probe:
		g.probing = false
	case g.outage.Since.IsZero() && t.count == g.count:
		if time.Since(g.opened) > steady {
			g.pauses.Reset()
		}
		g.count++
		g.outage.Since = time.Now()
	default:
		return 0
	}
	g.outage.Class, g.outage.Err = failure.Class, failure.Err
	return g.pause(failure.Class)
}

// giveBack takes back a ticket that was not used.
func (g *gate) giveBack(t ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.probe {
		g.probing = false
		g.announce()
	}
}

func (g *gate) pause(class Class) time.Duration {
	pause := g.pauses.Next()
	if class == Throttled {
		pause = max(pause, throttlePause)
	}
	g.until = time.Now().Add(pause)
	g.announce()
	return pause
}

func (g *gate) announce() {
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *gate) current() Outage {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.outage
}

// sleep waits for d, or for wake, or for the end of ctx, whose cause it returns.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}
