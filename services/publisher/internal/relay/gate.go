package relay

import (
	"cmp"
	"context"
	"sync"
	"time"

	"changerelay/services/publisher/internal/backoff"
)

// Pauses of the gate.
const (
	firstPause    = 100 * time.Millisecond
	longestPause  = 30 * time.Second
	throttlePause = 2 * time.Second // where the service names none
	// refusedPause is the longest pause after a refusal: the next message may be
	// one that the service likes.
	refusedPause = 500 * time.Millisecond
	// steady is how long the gate must have been open for the next outage to
	// begin with the first pause again.
	steady = 5 * time.Second
)

// earlyPauses are those between the first tries after a throttled send. They
// are over when the window has ended in which the service refuses.
var earlyPauses = [...]time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 400 * time.Millisecond}

// Outage is a time during which nothing can be sent.
type Outage struct {
	Class Class
	Err   error
	// Since is when it began, by the local clock; zero when there is no outage.
	Since time.Time
}

// gate holds all senders back while sending fails. After a pause it lets a
// single one try: hundreds of lanes must not hammer a topic that is in trouble.
// While the topic limits the rate, it lets messages through at the topic's pace.
type gate struct {
	mu      sync.Mutex
	outage  Outage // guarded by mu; the gate is closed while Since is set
	count   int64  // of outages
	took    int64  // sends that were accepted
	pace    pace
	tries   int // that failed in this outage
	until   time.Time
	probing bool
	pauses  backoff.Backoff
	opened  time.Time
	changed chan struct{} // closed, and replaced, when the gate changes

	turn chan struct{} // holds a token while a sender waits for the pace
}

func newGate() *gate {
	return &gate{
		pauses:  backoff.Backoff{Initial: firstPause, Max: longestPause},
		changed: make(chan struct{}),
		turn:    make(chan struct{}, 1),
	}
}

// ticket is the right to one send. It must be handed back to done.
type ticket struct {
	count int64
	probe bool
	room  int // how many messages may go
}

// pass waits until the holder may send some of n messages. At a pace, one waits
// for it and the others for their turn, in order.
func (g *gate) pass(ctx context.Context, n int) (ticket, error) {
	queued := false
	defer func() {
		if queued {
			<-g.turn
		}
	}()
	for {
		t, pause, changed := g.ask(n, queued)
		switch {
		case t.room > 0:
			return t, nil
		case pause > 0:
			if err := sleep(ctx, pause, changed); err != nil {
				return ticket{}, err
			}
		default:
			select {
			case g.turn <- struct{}{}:
				queued = true
			case <-ctx.Done():
				return ticket{}, context.Cause(ctx)
			}
		}
	}
}

// ask returns a ticket that has room; or how long to wait, unless the gate
// changes; or neither, where the holder has to be queued first.
func (g *gate) ask(n int, queued bool) (ticket, time.Duration, chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := ticket{count: g.count}
	switch {
	case !g.outage.Since.IsZero():
		pause := time.Until(g.until)
		if g.probing {
			pause = longestPause
		}
		if pause > 0 {
			return t, pause, g.changed
		}
		g.probing, t.probe, t.room = true, true, n
		if g.outage.Class == Throttled {
			t.room = 1
		}
		return t, 0, nil
	case g.pace.rate == 0:
		t.room = n
		return t, 0, nil
	case !queued:
		return t, 0, nil
	}
	room, pause := g.pace.take(time.Now(), n)
	t.room = room
	return t, pause, g.changed
}

// done takes the ticket back with the send's outcome: how many messages were
// accepted, and why the next was not; one that the message alone is to blame for
// counts as none. It returns the pause that is to be told: 0 when the outcome
// calls for none, belongs to an outage that is known already, or is the pace's
// usual touch of the limit.
func (g *gate) done(t ticket, accepted int, failure *SendError) time.Duration {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if failure == nil {
		g.took++
	} else if failure.Class == TooLarge {
		failure = nil
	}
	if failure == nil && t.probe {
		g.reopen(now)
	}
	g.pace.accepted(now, accepted)
	switch {
	case failure == nil:
		return 0
	case t.probe:
		g.probing = false
		g.tries++
	case g.outage.Since.IsZero() && t.count == g.count:
		if failure.Class == Throttled || now.Sub(g.opened) > steady {
			g.pauses.Reset()
		}
		g.count++
		g.tries = 0
		g.outage.Since = now
	default:
		return 0
	}
	g.outage.Class, g.outage.Err = failure.Class, failure.Err
	if failure.Class == Throttled {
		g.pace.refuse(now, g.outage.Since, t.room)
	}
	return g.pause(now, failure)
}

func (g *gate) reopen(now time.Time) {
	if g.outage.Class == Throttled {
		g.pace.resume(now, now.Sub(g.outage.Since))
	}
	g.outage, g.probing, g.opened = Outage{}, false, now
	g.announce()
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

// pause sets when the next try is, and returns how long until then, or 0 where it
// is not worth telling.
func (g *gate) pause(now time.Time, failure *SendError) time.Duration {
	var pause time.Duration
	early := failure.Class == Throttled && g.tries < len(earlyPauses)
	switch {
	case early:
		pause = earlyPauses[g.tries]
	case failure.Class == Throttled:
		pause = max(g.pauses.Next(), cmp.Or(failure.Wait, throttlePause))
	case failure.Class == Refused:
		pause = min(g.pauses.Next(), refusedPause)
	default:
		pause = g.pauses.Next()
	}
	g.until = now.Add(pause)
	g.announce()
	if early && (g.tries > 0 || g.pace.rate > 0) {
		return 0
	}
	return pause
}

func (g *gate) announce() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// accepted returns how many sends were accepted, and whether the gate is open.
func (g *gate) accepted() (count int64, open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.took, g.outage.Since.IsZero()
}

// current returns the outage, and the pace in messages a second, 0 where there is
// none. What the topic refuses for the rest of a window is no outage.
func (g *gate) current() (Outage, float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	outage := g.outage
	if outage.Class == Throttled && now.Sub(outage.Since) < longestEnd {
		outage = Outage{}
	}
	return outage, g.pace.current(now)
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
