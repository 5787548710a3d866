package session

import (
	"context"
	"sync"
	"time"
)

const (
	// window is the time in which the broker counts what it allows: what is beyond
	// that is refused until the next one begins.
	window = time.Second
	// paceHold is how long a pace stays after a refusal before it grows again.
	paceHold = 3 * time.Second
	// firstStep is the part by which a pace grows in a second where the limit is
	// near. When it is beyond what the limit was by that part, each second without a
	// refusal doubles the step, up to largestStep.
	firstStep   = 0.01
	largestStep = 1.0
	beyond      = 1.05
	// below is the part of what was allowed, or of the pace, that it becomes after a
	// refusal, leastKept the part of itself that it keeps at least.
	below     = 0.97
	leastKept = 0.5
	// slowest bounds a pace from below, in operations a second.
	slowest = 40
	// refusedPause is how long nothing goes after a refusal: what the broker allows in
	// a window is used up.
	refusedPause = 50 * time.Millisecond
	// usualOver is over how many receives what they bring is averaged.
	usualOver = 8
	// paceBurst is how much of a pace may be caught up with after a delay.
	paceBurst = 100 * time.Millisecond
	// paceForget is how long after the last refusal there is no pace any more.
	paceForget = 10 * time.Minute
)

// pace bounds what is asked of the broker, once it has refused something for being
// too much. An operation is a message that is received or settled. It finds how many
// the broker allows in a second, and follows that: a refusal lessens it, once in a
// window, and seconds without one in which it was used up have it grow.
//
// Receives and settlements wait for one another: where receives came in bursts, the
// settlements beside them would be refused, though both together are within the limit.
type pace struct {
	// turn has a token for the one who is next.
	turn chan struct{}

	mu       sync.Mutex
	rate     float64   // guarded by mu: operations a second; 0 is no bound
	limit    float64   // guarded by mu: what the broker allows, as the last refusal showed; 0 for unknown
	step     float64   // guarded by mu
	next     time.Time // guarded by mu: when the next one may go
	growAt   time.Time // guarded by mu
	refused  time.Time // guarded by mu: when the broker last refused one
	lessened time.Time // guarded by mu: when that last lessened the pace
	failing  time.Time // guarded by mu: since when all settlements are refused; zero while they are not
	done     meter     // guarded by mu: operations
	usual    float64   // guarded by mu: about how many messages a receive brings
}

func newPace() *pace { return &pace{turn: make(chan struct{}, 1), usual: 1} }

// settles waits until a message may be settled.
func (p *pace) settles(ctx context.Context) error {
	_, err := p.wait(ctx, func() float64 { return 1 })
	return err
}

// receives waits until messages may be received. It returns how many it has counted,
// for received.
func (p *pace) receives(ctx context.Context) (counted float64, err error) {
	return p.wait(ctx, func() float64 { return p.usual })
}

// wait waits until operations may go, as many as many says with mu held: one caller
// after another.
func (p *pace) wait(ctx context.Context, many func() float64) (counted float64, err error) {
	if !p.bounds(time.Now()) {
		return 0, nil
	}
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	defer func() { <-p.turn }()
	counted, wait := p.take(time.Now(), many)
	if wait <= 0 {
		return counted, nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return counted, nil
	case <-ctx.Done():
		return counted, context.Cause(ctx)
	}
}

// bounds tells whether there is a pace, and still is.
func (p *pace) bounds(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.refused) > paceForget {
		p.rate, p.limit = 0, 0
	}
	return p.rate > 0
}

// take counts operations, and tells in what time they may go.
func (p *pace) take(now time.Time, many func() float64) (counted float64, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rate == 0 {
		return 0, 0
	}
	p.grow(now)
	if earliest := now.Add(-paceBurst); p.next.Before(earliest) {
		p.next = earliest
	}
	wait = p.next.Sub(now)
	counted = many()
	p.defers(counted)
	return counted, wait
}

// defers puts off what comes next by operations. Called with mu held.
func (p *pace) defers(operations float64) {
	p.next = p.next.Add(time.Duration(operations / p.rate * float64(time.Second)))
}

// grow makes the pace faster while it is what bounds. Called with mu held.
func (p *pace) grow(now time.Time) {
	switch {
	case now.Before(p.growAt):
		return
	case p.done.perSecond(now) >= 0.9*p.rate:
		p.rate *= 1 + p.step
		if p.rate > beyond*p.limit {
			p.step = min(2*p.step, largestStep)
		}
	default:
		p.step = firstStep
	}
	p.growAt = now.Add(window)
}

// settled notes a message that was settled.
func (p *pace) settled(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done.add(now, 1)
	p.failing = time.Time{}
}

// received notes what a receive has brought, of which so many were counted before. What
// was not is made up for, but puts nothing off by more than a window: it may have come of
// many receives that went before there was a pace.
func (p *pace) received(now time.Time, n int, counted float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done.add(now, n)
	if n > 0 {
		p.usual += (float64(n) - p.usual) / usualOver
	}
	if p.rate == 0 {
		return
	}
	latest := now.Add(window)
	if p.next.After(latest) {
		latest = p.next
	}
	p.defers(float64(n) - counted)
	if p.next.After(latest) {
		p.next = latest
	}
}

// refuse notes that the broker has refused a settlement for being too much, and asks for
// a pause. Refusals of one window are one sign: they were on their way when it came.
// Where it has refused all for as long, the next goes after the pause that it asks for.
func (p *pace) refuse(now time.Time, pause time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = now
	switch {
	case p.failing.IsZero():
		p.failing, pause = now, refusedPause
	case now.Sub(p.failing) < window:
		pause = refusedPause
	}
	if until := now.Add(pause); p.next.Before(until) {
		p.next = until
	}
	if now.Sub(p.lessened) < window {
		return
	}
	p.lessened = now
	allowed := below * p.done.perSecond(now)
	if p.rate > 0 {
		allowed = min(max(allowed, leastKept*p.rate), below*p.rate)
		p.limit = allowed / below
	}
	p.rate, p.step, p.growAt = max(allowed, slowest), firstStep, now.Add(paceHold)
	if allowed < slowest {
		p.step, p.growAt = largestStep, now.Add(window) // the limit is not known
	}
}

// meter counts what happens in a second, by those of the clock.
type meter struct {
	began     time.Time
	last, now int
}

func (m *meter) add(now time.Time, n int) {
	m.turn(now)
	m.now += n
}

// perSecond is about what happened in the last second.
func (m *meter) perSecond(now time.Time) float64 {
	m.turn(now)
	part := now.Sub(m.began).Seconds()
	return float64(m.now) + float64(m.last)*(1-part)
}

func (m *meter) turn(now time.Time) {
	switch past := now.Sub(m.began); {
	case past < time.Second:
		return
	case past < 2*time.Second:
		m.last, m.began = m.now, m.began.Add(time.Second)
	default:
		m.last, m.began = 0, now
	}
	m.now = 0
}
