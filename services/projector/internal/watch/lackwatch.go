package watch

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/readmodel"
)

// LackWatch is the last look for aggregates that lack what was resent of them.
type LackWatch struct {
	Log zerolog.Logger

	last atomic.Int64 // plus one; 0 before the first look that succeeded
}

// Look counts them, and says so when there are more. Where it fails what was seen before
// stays. Looks come one after another.
func (w *LackWatch) Look(ctx context.Context, store *readmodel.Store) error {
	var n int64
	var first readmodel.Lack
	err := store.Lacks(ctx, "", func(l readmodel.Lack) error {
		if n++; n == 1 {
			first = l
		}
		return nil
	})
	if err != nil {
		return err
	}
	if before := w.last.Swap(n + 1); n > max(before-1, 0) {
		w.Log.Error().Int64("aggregates", n).Str("projection", first.Projection).Str("aggregate_id", first.Aggregate).
			Str("begins_at", string(first.First)).Str("first_missing", string(first.Missing)).
			Msg("events of aggregates are missing that were resent after the aggregates had begun here, or were lost on their way, and cannot be applied any more: see projector incomplete list")
	}
	return nil
}

// Aggregates is how many there are; nil until that is known.
func (w *LackWatch) Aggregates() *int64 {
	n := w.last.Load() - 1
	if n < 0 {
		return nil
	}
	return &n
}

var incompleteDesc = prometheus.NewDesc("projector_incomplete_aggregates",
	"Aggregates that lack what was resent of them, since they began here later or it was lost on its way, by projection; every replica says the same; absent until known.", nil, nil)

// Describe implements prometheus.Collector.
func (w *LackWatch) Describe(ch chan<- *prometheus.Desc) { ch <- incompleteDesc }

// Collect implements prometheus.Collector.
func (w *LackWatch) Collect(ch chan<- prometheus.Metric) {
	if n := w.Aggregates(); n != nil {
		ch <- prometheus.MustNewConstMetric(incompleteDesc, prometheus.GaugeValue, float64(*n))
	}
}
