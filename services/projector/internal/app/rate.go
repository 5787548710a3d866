package app

import (
	"context"
	"sync"
	"time"
)

const (
	// rateEvery is the time between samples, rateWindow how many there are.
	rateEvery  = time.Second
	rateWindow = 10
)

// rate is how fast a counter rises, over the last ten seconds.
type rate struct {
	count func() int64

	mu      sync.Mutex
	samples []int64 // guarded by mu; the latest last
}

// run samples the counter until ctx ends.
func (r *rate) run(ctx context.Context) {
	ticker := time.NewTicker(rateEvery)
	defer ticker.Stop()
	for {
		r.sample()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (r *rate) sample() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.samples) > rateWindow {
		r.samples = append(r.samples[:0], r.samples[1:]...)
	}
	r.samples = append(r.samples, r.count())
}

// perSecond is 0 before there are two samples.
func (r *rate) perSecond() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := len(r.samples) - 1
	if last < 1 {
		return 0
	}
	return float64(r.samples[last]-r.samples[0]) / (time.Duration(last) * rateEvery).Seconds()
}
