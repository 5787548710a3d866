package amqpserver

import (
	"cmp"
	"slices"
	"time"
)

// Pace is how long the service takes for things, and what it allows. It may be changed while the server runs. The zero
// Pace takes no time and leaves limits and timeouts to the Config.
type Pace struct {
	// Send, Settle and Accept draw how long a message, a settlement and the attach of a receiver take; nil is no time.
	// Answers wait for it side by side, as what is sent after them does not wait for them.
	Send, Settle, Accept func() time.Duration

	MaxConnections int
	MaxLinks       int // of an AMQP session, from its begin on

	LinklessTimeout time.Duration
	LinkIdleTimeout time.Duration
	AcceptTimeout   time.Duration
}

// SetPace changes the pace, of what is open as well.
func (s *Server) SetPace(p Pace) {
	p.MaxConnections = cmp.Or(p.MaxConnections, s.cfg.MaxConnections)
	p.MaxLinks = cmp.Or(p.MaxLinks, s.cfg.MaxLinks)
	p.LinklessTimeout = cmp.Or(p.LinklessTimeout, s.cfg.LinklessTimeout)
	p.LinkIdleTimeout = cmp.Or(p.LinkIdleTimeout, s.cfg.LinkIdleTimeout)
	p.AcceptTimeout = cmp.Or(p.AcceptTimeout, s.cfg.AcceptTimeout)
	s.pace.Store(&p)
}

func draw(from func() time.Duration) time.Duration {
	if from == nil {
		return 0
	}
	return from()
}

// postponed is an answer that waits for its time.
type postponed struct {
	number uint64
	timer  *time.Timer
	do     func()
}

// later does something for a link when a time has passed, or at once when the link is closed before. do is called with
// the connection's mu held, which later needs too.
func (l *link) later(d time.Duration, do func()) {
	if d <= 0 || l.state != attached {
		do()
		return
	}
	c := l.s.c
	if l.postponed == nil {
		l.postponed = map[*postponed]struct{}{}
	}
	l.postpones++
	p := &postponed{number: l.postpones, do: do}
	l.postponed[p] = struct{}{}
	c.wg.Add(1)
	p.timer = time.AfterFunc(d, func() {
		defer c.wg.Done()
		c.mu.Lock()
		if _, due := l.postponed[p]; due {
			delete(l.postponed, p)
			do()
		}
		c.mu.Unlock()
		c.flush()
	})
}

// hurry does at once, in order, what waits for its time: nothing may follow the detach of a link.
func (l *link) hurry() {
	all := make([]*postponed, 0, len(l.postponed))
	for p := range l.postponed {
		all = append(all, p)
	}
	clear(l.postponed)
	slices.SortFunc(all, func(a, b *postponed) int { return cmp.Compare(a.number, b.number) })
	for _, p := range all {
		if p.timer.Stop() {
			l.s.c.wg.Done()
		}
		p.do()
	}
}
