package session

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// idlePolicy decides which sessions are kept although they have run empty: steady
// ones, that get a message every now and then and would cost an accept for each.
//
// A session is steady when it came back soon after it had run empty here. It is
// kept only while accepts of this process wait besides: as long as one waits,
// the broker has no session with messages for anybody. So room is how many
// sessions may be held while one of them is kept, and with more the one that has
// been idle longest is given back.
type idlePolicy struct {
	room int
	// period is how soon a session has to come back; it may take twice that.
	period time.Duration

	mu   sync.Mutex
	held int        // guarded by mu
	idle *list.List // guarded by mu: of context.CancelFunc, the longest idle first
	// Sessions that ran empty, in this period and in the one before. Guarded by mu.
	emptied, before map[string]struct{}
	turned          time.Time // guarded by mu: when this period began
}

func newIdlePolicy(room int, period time.Duration) *idlePolicy {
	return &idlePolicy{room: room, period: period, idle: list.New(), emptied: map[string]struct{}{}}
}

// began notes that a session is held, gives an idle one back where that leaves
// too few accepts, and tells whether this one is steady and may be kept.
func (p *idlePolicy) began(id string) (steady bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held++
	if p.held > p.room {
		if longest := p.idle.Front(); longest != nil {
			p.idle.Remove(longest).(context.CancelFunc)()
		}
		return false
	}
	p.turn()
	_, now := p.emptied[id]
	_, lately := p.before[id]
	return now || lately
}

// ended notes that a session is not held any more, and whether it had run empty.
func (p *idlePolicy) ended(id string, empty bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held--
	if empty && p.room > 0 && p.period > 0 {
		p.turn()
		p.emptied[id] = struct{}{}
	}
}

// turn begins a new period when the present one is over. Called with mu held.
func (p *idlePolicy) turn() {
	now := time.Now()
	switch past := now.Sub(p.turned); {
	case past < p.period:
		return
	case past < 2*p.period:
		p.before = p.emptied
	default:
		p.before = nil
	}
	p.emptied, p.turned = map[string]struct{}{}, now
}

// wait tells that an idle session waits for its next message until arrived is
// called. giveBack is called when its place is needed, maybe at once.
func (p *idlePolicy) wait(giveBack context.CancelFunc) (arrived func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held > p.room {
		giveBack()
		return func() {}
	}
	place := p.idle.PushBack(giveBack)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.idle.Remove(place)
	}
}
