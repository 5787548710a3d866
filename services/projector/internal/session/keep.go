package session

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// keeping decides which sessions are kept although they have run empty: steady
// ones, that get a message every now and then and would cost an accept for each.
//
// A session is steady when it came back soon after it had run empty here. It is
// kept only while accepts of this process wait besides: as long as one waits,
// the broker has no session with messages for anybody. So room is how many
// sessions may be held while one of them is kept, and with more the one that has
// been idle longest is given back.
type keeping struct {
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

func newKeeping(room int, period time.Duration) *keeping {
	return &keeping{room: room, period: period, idle: list.New(), emptied: map[string]struct{}{}}
}

// began notes that a session is held, gives an idle one back where that leaves
// too few accepts, and tells whether this one is steady and may be kept.
func (k *keeping) began(id string) (steady bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held++
	if k.held > k.room {
		if longest := k.idle.Front(); longest != nil {
			k.idle.Remove(longest).(context.CancelFunc)()
		}
		return false
	}
	k.turn()
	_, now := k.emptied[id]
	_, lately := k.before[id]
	return now || lately
}

// ended notes that a session is not held any more, and whether it had run empty.
func (k *keeping) ended(id string, empty bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held--
	if empty && k.room > 0 && k.period > 0 {
		k.turn()
		k.emptied[id] = struct{}{}
	}
}

// turn begins a new period when the present one is over. Called with mu held.
func (k *keeping) turn() {
	now := time.Now()
	switch past := now.Sub(k.turned); {
	case past < k.period:
		return
	case past < 2*k.period:
		k.before = k.emptied
	default:
		k.before = nil
	}
	k.emptied, k.turned = map[string]struct{}{}, now
}

// wait tells that an idle session waits for its next message until arrived is
// called. giveBack is called when its place is needed, maybe at once.
func (k *keeping) wait(giveBack context.CancelFunc) (arrived func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held > k.room {
		giveBack()
		return func() {}
	}
	place := k.idle.PushBack(giveBack)
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.idle.Remove(place)
	}
}
