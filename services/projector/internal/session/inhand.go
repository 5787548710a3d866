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

// left is what a hold has left.
type left struct {
	messages int
	since    time.Time // when the broker stored the oldest of them
}

// note says what a hold has left; nothing for no message.
func (i *inHand) note(h *hold, messages []Message) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(messages) == 0 {
		delete(i.left, h)
		return
	}
	i.left[h] = left{messages: len(messages), since: messages[0].EnqueuedAt}
}

// Oldest is when the broker stored the oldest message that is received and not
// settled; false where there is none.
func (e *Engine) Oldest() (oldest time.Time, some bool) {
	e.inHand.mu.Lock()
	defer e.inHand.mu.Unlock()
	for _, one := range e.inHand.left {
		if !some || one.since.Before(oldest) {
			oldest, some = one.since, true
		}
	}
	return oldest, some
}

// InHand is how many messages are received and not settled.
func (e *Engine) InHand() (messages int) {
	e.inHand.mu.Lock()
	defer e.inHand.mu.Unlock()
	for _, one := range e.inHand.left {
		messages += one.messages
	}
	return messages
}
