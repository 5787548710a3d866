package watch

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/session"
)

// How the dead letters are counted.
const (
	deadEvery = time.Minute
	DeadTime  = 20 * time.Second
	// mostDead bounds what one look costs.
	mostDead = 500
)

// otherReason stands for every reason that is not among deadReasons.
const otherReason = "other"

// deadReasons are those that the broker and the projector give. Whoever else
// receives from the subscription may give any, which is no label.
var deadReasons = []string{
	"MaxDeliveryCountExceeded", "TTLExpiredException", "HeaderSizeExceeded", "MaxTransferHopCountExceeded",
	"ForeignMessage", "InvalidMessage", "NotParkable", "NotApplied", otherReason,
}

// DeadLetters is what /status shows of the subscription's dead-letter queue.
type DeadLetters struct {
	// ByReason counts them, as of the last look; absent where that failed.
	ByReason map[string]int `json:"by_reason,omitempty"`
	// More tells that there are more than were counted.
	More bool      `json:"more,omitempty"`
	At   time.Time `json:"looked_at"`
	// Error says why they cannot be seen: nobody knows then whether there are any.
	Error string `json:"error,omitempty"`
}

// DeadWatch looks at the subscription's dead-letter queue. What the broker itself
// dead-letters is missing in its aggregate, and no projector has ever seen it.
type DeadWatch struct {
	Count  func(ctx context.Context, most int) (byReason map[string]int, whole bool, err error)
	Redact func(string) string
	Log    zerolog.Logger

	last   atomic.Pointer[DeadLetters] // nil before the first look
	outage session.Outage
}

// Run looks until ctx ends.
func (w *DeadWatch) Run(ctx context.Context) error {
	ticker := time.NewTicker(deadEvery)
	defer ticker.Stop()
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (w *DeadWatch) look(ctx context.Context) {
	attempt, cancel := context.WithTimeout(ctx, DeadTime)
	defer cancel()
	counted, whole, err := w.Count(attempt, mostDead)
	if ctx.Err() != nil {
		return
	}
	seen := &DeadLetters{At: time.Now().UTC()}
	defer func() { w.last.Store(seen) }()
	if err != nil {
		seen.Error = w.Redact(err.Error())
		if w.outage.Failed(err) {
			w.Log.Warn().Err(err).Msg("the dead-letter queue cannot be looked at, what the broker dead-letters goes unseen")
		}
		return
	}
	if lasted, ended := w.outage.Recovered(); ended {
		w.Log.Info().Dur("lasted_ms", lasted).Msg("the dead-letter queue can be looked at again")
	}
	seen.ByReason, seen.More = byKnownReason(counted), !whole
	w.tell(seen.ByReason)
}

// byKnownReason sums up the reasons that are not known.
func byKnownReason(counted map[string]int) map[string]int {
	known := map[string]int{}
	for reason, n := range counted {
		if !slices.Contains(deadReasons, reason) {
			reason = otherReason
		}
		known[reason] += n
	}
	return known
}

// tell logs the dead letters whose number is higher than the look before has
// counted.
func (w *DeadWatch) tell(now map[string]int) {
	var before map[string]int
	if last := w.last.Load(); last != nil {
		before = last.ByReason
	}
	for _, reason := range slices.Sorted(maps.Keys(now)) {
		if now[reason] > before[reason] {
			w.Log.Warn().Str("reason", reason).Int("dead_letters", now[reason]).
				Msg("there are more dead-lettered messages; see projector dlq list")
		}
	}
}

// Seen is the last look, nil before the first.
func (w *DeadWatch) Seen() *DeadLetters { return w.last.Load() }

var (
	deadLettersDesc = prometheus.NewDesc("projector_dead_letters",
		"Messages in the subscription's dead-letter queue, at most 500 counted; every replica says the same; absent until known, and while the queue cannot be looked at.", []string{"reason"}, nil)
	deadLettersSeenDesc = prometheus.NewDesc("projector_dead_letters_seen",
		"1 where the last look at the dead-letter queue succeeded, 0 where it failed; absent before the first.", nil, nil)
)

// Describe implements prometheus.Collector.
func (w *DeadWatch) Describe(ch chan<- *prometheus.Desc) {
	ch <- deadLettersDesc
	ch <- deadLettersSeenDesc
}

// Collect implements prometheus.Collector.
func (w *DeadWatch) Collect(ch chan<- prometheus.Metric) {
	last := w.Seen()
	if last == nil {
		return
	}
	succeeded := 0.0
	if last.Error == "" {
		succeeded = 1
		for _, reason := range deadReasons {
			ch <- prometheus.MustNewConstMetric(deadLettersDesc, prometheus.GaugeValue, float64(last.ByReason[reason]), reason)
		}
	}
	ch <- prometheus.MustNewConstMetric(deadLettersSeenDesc, prometheus.GaugeValue, succeeded)
}
