package sessionlink

import "sync"

// running are goroutines that somebody waits for. Unlike those of a
// sync.WaitGroup they may be started while that goes on: by then it is too late
// for them, and they are not started.
type running struct {
	group sync.WaitGroup

	mu    sync.Mutex
	ended bool // guarded by mu
}

// Go starts f, and tells whether it did.
func (r *running) Go(f func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	r.group.Go(f)
	return true
}

// Wait has nothing more started and waits for what was.
func (r *running) Wait() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.group.Wait()
}
