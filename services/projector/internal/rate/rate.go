// Package rate says how fast a counter rises.
package rate

import (
	"context"
	"sync"
	"time"
)

const (
	// every is the time between samples, window how many there are.
	every  = time.Second
	window = 10
)

// Meter samples a counter once a second, and keeps the last ten seconds.
type Meter struct {
	count func() int64

	mu      sync.Mutex
	samples []int64 // guarded by mu; the latest last
}

// New returns the meter of a counter.
func New(count func() int64) *Meter { return &Meter{count: count} }

// Run samples the counter until ctx ends.
func (m *Meter) Run(ctx context.Context) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		m.sample()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (m *Meter) sample() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.samples) > window {
		m.samples = append(m.samples[:0], m.samples[1:]...)
	}
	m.samples = append(m.samples, m.count())
}

// PerSecond is 0 before there are two samples.
func (m *Meter) PerSecond() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := len(m.samples) - 1
	if last < 1 {
		return 0
	}
	return float64(m.samples[last]-m.samples[0]) / (time.Duration(last) * every).Seconds()
}
