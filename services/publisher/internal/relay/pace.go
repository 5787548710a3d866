package relay

import "time"

const (
	// window is the time in which Service Bus counts credits: what is beyond them
	// is refused until the next one begins.
	window = time.Second
	// longestEnd is how long the topic may refuse for the end of a window to be why
	// it does no more: the last early try comes then, and may take its time.
	longestEnd = window + 500*time.Millisecond
	// below is the part of what the topic was seen to allow that is sent then.
	below = 0.98
	// hold is how long a pace stays after a refusal before it grows again.
	hold = 3 * time.Second
	// firstStep is the part by which a pace grows in a second when the limit is
	// known to be near. Each second without a refusal doubles it, up to largestStep.
	firstStep   = 0.01
	largestStep = 1.0
	// slowest and slowStart, in messages a second, bound a pace from below: where
	// the limit is known, and where it is not.
	slowest   = 1
	slowStart = 20
	// forget is how long after the last refusal there is no pace any more.
	forget = 10 * time.Minute
	// spread is how far sends are apart at least, where they could be filled up to
	// then; burst is how much of a pace may be caught up with after a delay.
	spread = 20 * time.Millisecond
	burst  = 100 * time.Millisecond
)

// pace bounds how many messages go to the topic in a second, once the topic has
// refused some for being too many. It finds the limit, and follows it.
//
// The window in which a message is refused is still the same one at the next
// refusal within a second, and began a second before that at the earliest. So
// what was accepted in that second is all that the topic allows. From a little
// below that the pace holds, then grows, slowly at first, until the next refusal.
//
// It is guarded by the breaker's lock. The zero pace lets everything through.
type pace struct {
	rate    float64 // messages a second; 0 is no bound
	tokens  float64 // messages that may go now
	filled  time.Time
	growAt  time.Time
	step    float64
	refused time.Time
	allowed int // what the topic allows in a second, as far as was seen
	size    int // of the largest send that was refused since the pace was set
	meter   meter
}

// take asks for n messages. It returns how many may go, or how long to wait
// before asking again.
func (p *pace) take(now time.Time, n int) (int, time.Duration) {
	if p.current(now) == 0 {
		return n, 0
	}
	p.grow(now)
	p.tokens = min(p.tokens+p.rate*now.Sub(p.filled).Seconds(), max(1, p.rate*burst.Seconds()))
	p.filled = now
	want := min(float64(n), max(1, p.rate*spread.Seconds()))
	if p.tokens < want {
		return 0, time.Duration((want-p.tokens)/p.rate*float64(time.Second)) + time.Microsecond
	}
	count := min(n, int(p.tokens))
	p.tokens -= float64(count)
	return count, 0
}

// grow makes the pace faster while it is what bounds the sending.
func (p *pace) grow(now time.Time) {
	switch {
	case now.Before(p.growAt):
		return
	case float64(p.meter.lastSecond(now)+1) >= 0.9*p.rate:
		p.rate *= 1 + p.step
		p.step = min(2*p.step, largestStep)
	default:
		p.step = firstStep
	}
	p.growAt = now.Add(time.Second)
}

// accepted counts messages that the topic accepted.
func (p *pace) accepted(now time.Time, n int) {
	p.meter.add(now, n)
	p.allowed += n // an answer that comes after a refusal is of the time before it
}

// refuse notes that n messages were refused, at a time when the topic has refused
// since some time, or did something else at first.
func (p *pace) refuse(now, since time.Time, n int) {
	if now.Sub(since) < window || p.refused.Before(since) {
		p.allowed = p.meter.lastSecond(now)
	}
	p.refused, p.size = now, max(p.size, n)
}

// resume sets the pace after the topic has refused for some time. The limit is
// known where that ended with the window, and what was allowed in it is not less
// than what was refused at once. Otherwise the pace begins with what there was
// and grows fast.
func (p *pace) resume(now time.Time, took time.Duration) {
	known := took < longestEnd && p.allowed >= p.size
	rate := float64(p.allowed)
	if p.rate > 0 {
		rate = min(rate, p.rate)
	}
	if known {
		p.rate, p.step, p.growAt = max(below*rate, slowest), firstStep, now.Add(hold)
	} else {
		p.rate, p.step, p.growAt = max(below*rate, slowStart), largestStep, now.Add(time.Second)
	}
	p.tokens, p.filled, p.size = p.rate*min(took, burst).Seconds(), now, 0
}

// current returns the pace in messages a second, 0 when there is no bound or none
// any more.
func (p *pace) current(now time.Time) float64 {
	if now.Sub(p.refused) > forget {
		p.rate = 0
	}
	return p.rate
}

// slot is how finely a meter counts.
const slot = 20 * time.Millisecond

// meter counts what happens in the last second.
type meter struct {
	began  time.Time
	latest int64
	slots  [time.Second / slot]int
}

func (m *meter) add(now time.Time, n int) {
	m.slots[m.turn(now)] += n
}

func (m *meter) lastSecond(now time.Time) int {
	m.turn(now)
	sum := 0
	for _, n := range m.slots {
		sum += n
	}
	return sum
}

// turn clears the slots that have passed and returns the present one.
func (m *meter) turn(now time.Time) int64 {
	const count = int64(len(m.slots))
	if m.began.IsZero() {
		m.began = now
	}
	at := int64(now.Sub(m.began) / slot)
	for next := max(m.latest+1, at-count+1); next <= at; next++ {
		m.slots[next%count] = 0
	}
	m.latest = max(m.latest, at)
	return m.latest % count
}
