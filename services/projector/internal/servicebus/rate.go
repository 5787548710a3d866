package servicebus

import (
	"sync"
	"time"
)

const (
	// startRate is how many bytes a second are taken to come until it has shown.
	startRate = 64 << 20
	// rateBytes is how much one receive has to bring to show it.
	rateBytes = 64 << 10
	// receiveTime is about how long what one receive asks for may take to come.
	receiveTime = 250 * time.Millisecond
)

// rate is how many bytes come in a second, by what receives have brought. The
// client hands back what comes after a receive has ended, so no more is asked for
// than comes in good time, and that time is waited.
type rate struct {
	mu        sync.Mutex
	perSecond int64 // guarded by mu; 0 until known
}

func (r *rate) bytes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.perSecond == 0 {
		return startRate
	}
	return r.perSecond
}

// fits is how many messages of so many bytes each come in good time.
func (r *rate) fits(limit int, each int64) int {
	part := r.bytes() * int64(receiveTime) / int64(time.Second)
	return int(max(min(int64(limit), part/max(each, 1)), 1))
}

// takes is how long bytes may take, twice what they do as a rule.
func (r *rate) takes(bytes int64) time.Duration {
	return min(time.Duration(2*float64(bytes)/float64(r.bytes())*float64(time.Second)), 2*receiveTime)
}

// note notes what a receive has brought.
func (r *rate) note(bytes int64, took time.Duration) {
	if bytes < rateBytes || took <= 0 {
		return
	}
	now := max(int64(float64(bytes)/took.Seconds()), 1)
	before := r.bytes()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.perSecond = before + (now-before)/4
}
