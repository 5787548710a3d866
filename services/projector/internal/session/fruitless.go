package session

import (
	"sync"
	"time"
)

// fruitless follows sessions that are granted, one after another, and that no message
// comes of. One alone is nothing: its messages may have been settled by another replica.
type fruitless struct {
	mu    sync.Mutex
	holds int       // guarded by mu
	since time.Time // guarded by mu: when the first of them ended
	until time.Time // guarded by mu: when they are over unless there is another one
}

// fruitlessGap is how much longer than twice the wait for its messages the next such
// session may take to be granted and given back.
const fruitlessGap = time.Minute

// note notes a session whose messages were waited for in vain.
func (f *fruitless) note(waited time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if f.holds == 0 || now.After(f.until) {
		f.holds, f.since = 0, now
	}
	f.holds++
	f.until = now.Add(2*waited + fruitlessGap)
}

// end notes that a message has come.
func (f *fruitless) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.holds = 0
}

// EmptyHanded is since when sessions are granted of which no message comes, and none of
// any other one; the zero time where that is not so.
func (e *Engine) EmptyHanded() time.Time {
	f := &e.fruitless
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.holds < 2 || time.Now().After(f.until) {
		return time.Time{}
	}
	return f.since
}
