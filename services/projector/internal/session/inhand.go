package session

import (
	"sync"
	"time"
)

// inHand knows the oldest message that each hold has received and not settled.
type inHand struct {
	mu    sync.Mutex
	since map[*hold]time.Time // by when the broker stored it
}

// note says what a hold has left; nothing for no message.
func (i *inHand) note(h *hold, left []Message) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(left) == 0 {
		delete(i.since, h)
		return
	}
	i.since[h] = left[0].EnqueuedAt
}

// Oldest is when the broker stored the oldest message that is received and not
// settled; false where there is none.
func (e *Engine) Oldest() (oldest time.Time, some bool) {
	e.inHand.mu.Lock()
	defer e.inHand.mu.Unlock()
	for _, at := range e.inHand.since {
		if !some || at.Before(oldest) {
			oldest, some = at, true
		}
	}
	return oldest, some
}
