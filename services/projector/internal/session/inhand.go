package session

import (
	"sync"
	"time"
)

// inHand knows what each hold has received and not settled, until its session is given back.
type inHand struct {
	mu   sync.Mutex
	left map[*hold]left // guarded by mu
}

// left is what a hold has left: the batch that is settled behind it, and what is after that.
type left struct{ settling, present part }

// part is how many messages there are, and when the broker stored the oldest of them.
type part struct {
	messages int
	since    time.Time
}

// partOf is the part of messages and of what comes after them.
func partOf(messages, after []Message) part {
	oldest := messages
	if len(oldest) == 0 {
		oldest = after
	}
	if len(oldest) == 0 {
		return part{}
	}
	return part{messages: len(messages) + len(after), since: oldest[0].EnqueuedAt}
}

// note changes what is known of a hold.
func (i *inHand) note(h *hold, change func(*left)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	one := i.left[h]
	change(&one)
	if one == (left{}) {
		delete(i.left, h)
		return
	}
	i.left[h] = one
}

// forget notes that a session is given back.
func (i *inHand) forget(h *hold) {
	i.note(h, func(l *left) { *l = left{} })
}

// Oldest is when the broker stored the oldest message that is received and not
// settled; false where there is none.
func (e *Engine) Oldest() (oldest time.Time, some bool) {
	e.inHand.mu.Lock()
	defer e.inHand.mu.Unlock()
	for _, one := range e.inHand.left {
		for _, p := range []part{one.settling, one.present} {
			if p.messages > 0 && (!some || p.since.Before(oldest)) {
				oldest, some = p.since, true
			}
		}
	}
	return oldest, some
}

// InHand is how many messages are received and not settled. Those of a batch that is being
// settled count until all of it is.
func (e *Engine) InHand() (messages int) {
	e.inHand.mu.Lock()
	defer e.inHand.mu.Unlock()
	for _, one := range e.inHand.left {
		messages += one.settling.messages + one.present.messages
	}
	return messages
}
