package network

import (
	"sync"
	"time"
)

// deadline is a channel that is closed when a time has passed; the time may be changed.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	late  chan struct{}
}

func newDeadline() deadline { return deadline{late: make(chan struct{})} }

// passed is closed once the deadline that is set now has passed.
func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.late
}

// set moves the deadline, of whoever waits as well; the zero time is none.
func (d *deadline) set(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		d.late = make(chan struct{}) // it has been closed, or is about to be
	}
	d.timer = nil
	select {
	case <-d.late:
		d.late = make(chan struct{})
	default:
	}
	if at.IsZero() {
		return
	}
	late := d.late
	if wait := time.Until(at); wait > 0 {
		d.timer = time.AfterFunc(wait, func() { close(late) })
		return
	}
	close(late)
}
