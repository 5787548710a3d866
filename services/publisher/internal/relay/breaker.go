package relay

import (
	"cmp"
	"context"
	"sync"
	"time"

	"changerelay/services/publisher/internal/backoff"
)

// Pauses of the circuit breaker.
const (
	firstPause    = 100 * time.Millisecond
	longestPause  = 30 * time.Second
	throttlePause = 2 * time.Second // where the service names none
	// refusedPause is the longest pause after a refusal: the next message may be
	// one that the service likes.
	refusedPause = 500 * time.Millisecond
	// steady is how long the breaker must have been closed for the next outage to
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

// breaker is the circuit breaker of all lanes: it is open while sending fails. After a pause it lets a
// single one try: hundreds of lanes must not hammer a topic that is in trouble.
// While the topic limits the rate, it lets messages through at the topic's pace. No
// more bytes are under way than go over in time: see load.
type breaker struct {
	mu       sync.Mutex
	outage   Outage // guarded by mu; the breaker is open while Since is set
	count    int64  // of outages
	took     int64  // sends that were accepted
	pace     pace
	load     load
	crowded  bool // whether the holder of turn waits for others to end
	tries    int  // that failed in this outage
	until    time.Time
	probing  bool
	pauses   backoff.Backoff
	closedAt time.Time
	changed  chan struct{} // closed, and replaced, when the breaker changes

	turn chan struct{} // holds a token while a sender waits for the pace or for room
}

func newBreaker(sendTimeout time.Duration) *breaker {
	return &breaker{
		load:    load{timeout: sendTimeout},
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
	began time.Time
	demand
}

// answer is a ticket that has room; or how long to wait, unless the breaker changes, where
// aside says that nobody is to wait for the one that does; or neither, where that one has to
// be queued first.
type answer struct {
	ticket
	pause   time.Duration
	changed chan struct{}
	aside   bool
}

// pass waits until the holder may send some of n messages. At a pace, or with too many
// bytes under way, one waits and the others for their turn, in order.
func (b *breaker) pass(ctx context.Context, n int, d demand) (ticket, error) {
	queued := false
	defer func() {
		if queued {
			<-b.turn
		}
	}()
	for {
		a := b.ask(n, d, queued)
		if a.aside && queued {
			<-b.turn
			queued = false
		}
		switch {
		case a.room > 0:
			return a.ticket, nil
		case a.pause > 0:
			if err := sleep(ctx, a.pause, a.changed); err != nil {
				return ticket{}, err
			}
		default:
			select {
			case b.turn <- struct{}{}:
				queued = true
			case <-ctx.Done():
				return ticket{}, context.Cause(ctx)
			}
		}
	}
}

// ask answers one that wants to send some of n messages, and is queued or not.
func (b *breaker) ask(n int, d demand, queued bool) answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, now := ticket{count: b.count}, time.Now()
	if !b.outage.Since.IsZero() {
		return b.probe(now, t, n, d)
	}
	if pause := b.load.hold(now, d); pause > 0 {
		b.crowded = b.crowded && !queued
		return answer{pause: pause, changed: b.changed, aside: true}
	}
	fits := b.load.fits(now, d)
	switch {
	case b.pace.rate == 0 && !b.crowded && fits:
		t.room = n
		return answer{ticket: b.load.begin(now, t, d)}
	case !queued:
		return answer{}
	}
	if b.crowded = !fits; b.crowded {
		return answer{pause: longestPause, changed: b.changed}
	}
	room, pause := b.pace.take(now, n)
	if room == 0 {
		return answer{pause: pause, changed: b.changed}
	}
	t.room, d.bytes = room, d.bytes*room/n
	return answer{ticket: b.load.begin(now, t, d)}
}

// probe answers one that wants to send while the breaker is open.
func (b *breaker) probe(now time.Time, t ticket, n int, d demand) answer {
	pause := b.until.Sub(now)
	if b.probing {
		pause = longestPause
	}
	if pause > 0 {
		return answer{pause: pause, changed: b.changed}
	}
	b.probing, t.probe, t.room = true, true, n
	if b.outage.Class == Throttled {
		t.room, d.bytes = 1, d.bytes/n
	}
	return answer{ticket: b.load.begin(now, t, d)}
}

// done takes the ticket back with the send's outcome: how many messages were
// accepted, and why the next was not; one that the message alone is to blame for
// counts as none. It returns the pause that is to be told: 0 when the outcome
// calls for none, belongs to an outage that is known already, or is the pace's
// usual touch of the limit.
func (b *breaker) done(t ticket, accepted int, failure *SendError) time.Duration {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave(now, t, failure == nil)
	if failure == nil {
		b.took++
	} else if failure.Class == TooLarge {
		failure = nil
	}
	if failure == nil && t.probe {
		b.reset(now)
	}
	b.pace.accepted(now, accepted)
	switch {
	case failure == nil:
		return 0
	case t.probe:
		b.probing = false
		b.tries++
	case b.outage.Since.IsZero() && t.count == b.count:
		if failure.Class == Throttled || now.Sub(b.closedAt) > steady {
			b.pauses.Reset()
		}
		b.count++
		b.tries = 0
		b.outage.Since = now
	default:
		return 0
	}
	b.outage.Class, b.outage.Err = failure.Class, failure.Err
	if failure.Class == Throttled {
		b.pace.refuse(now, b.outage.Since, t.room)
	}
	return b.pause(now, failure)
}

func (b *breaker) reset(now time.Time) {
	if b.outage.Class == Throttled {
		b.pace.resume(now, now.Sub(b.outage.Since))
	}
	b.outage, b.probing, b.closedAt = Outage{}, false, now
	b.announce()
}

// giveBack takes back a ticket that was not used, or whose send tells nothing of the topic.
func (b *breaker) giveBack(t ticket) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave(time.Now(), t, false)
	if t.probe {
		b.probing = false
		b.announce()
	}
}

// leave makes room: the ticket's send has ended, or was not made.
func (b *breaker) leave(now time.Time, t ticket, accepted bool) {
	b.load.end(now, t, accepted)
	if b.crowded || t.beside || t.turn {
		b.announce()
	}
}

// pause sets when the next try is, and returns how long until then, or 0 where it
// is not worth telling.
func (b *breaker) pause(now time.Time, failure *SendError) time.Duration {
	var pause time.Duration
	early := failure.Class == Throttled && b.tries < len(earlyPauses)
	switch {
	case early:
		pause = earlyPauses[b.tries]
	case failure.Class == Throttled:
		pause = max(b.pauses.Next(), cmp.Or(failure.Wait, throttlePause))
	case failure.Class == Refused:
		pause = min(b.pauses.Next(), refusedPause)
	default:
		pause = b.pauses.Next()
	}
	b.until = now.Add(pause)
	b.announce()
	if early && (b.tries > 0 || b.pace.rate > 0) {
		return 0
	}
	return pause
}

func (b *breaker) announce() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// accepted returns how many sends were accepted, and whether the breaker is closed.
func (b *breaker) accepted() (count int64, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.took, b.outage.Since.IsZero()
}

// current returns the outage, and the pace in messages a second, 0 where there is
// none. What the topic refuses for the rest of a window is no outage.
func (b *breaker) current() (Outage, float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	outage := b.outage
	if outage.Class == Throttled && now.Sub(outage.Since) < longestEnd {
		outage = Outage{}
	}
	return outage, b.pace.current(now)
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
