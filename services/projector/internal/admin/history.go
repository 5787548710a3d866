package admin

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

const (
	// sampleEvery is the time between samples, sampled how many are kept: ten minutes.
	sampleEvery = 2 * time.Second
	sampled     = 300
)

// Sample is what the page's picture has of one moment.
type Sample struct {
	// At is when, in milliseconds since 1970; the server sets it.
	At int64 `json:"at"`
	// PerSecond is how many events went on, of the last ten seconds.
	PerSecond float64 `json:"per_second"`
	// BehindSeconds is how far behind the process is, as far as it knows.
	BehindSeconds float64 `json:"behind_seconds"`
	// InFlight is how many were under way.
	InFlight int `json:"in_flight"`
}

// history is what was sampled lately, so that whoever opens the page sees the minutes
// before as well. It may be used from any goroutine.
type history struct {
	sample func() Sample // nil for none

	mu      sync.Mutex
	samples []Sample // guarded by mu; the latest last
}

func (h *history) take(now time.Time) {
	if h.sample == nil {
		return
	}
	one := h.sample() // takes locks of its own
	one.At = now.UnixMilli()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.samples) == sampled {
		h.samples = append(h.samples[:0], h.samples[1:]...)
	}
	h.samples = append(h.samples, one)
}

// ServeHTTP writes the samples as JSON, the latest last.
func (h *history) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h.mu.Lock()
	samples := append([]Sample{}, h.samples...)
	h.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(samples) // the reader may have gone
}
