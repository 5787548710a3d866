package watch

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"changerelay/services/projector/internal/readmodel"
)

// VerifyWatch is the last look at what projector verify has found.
type VerifyWatch struct {
	last atomic.Pointer[readmodel.Verified] // nil before the first look that found one
}

// Look reads it. Where that fails what was seen before stays.
func (w *VerifyWatch) Look(ctx context.Context, store *readmodel.Store) {
	if last, err := store.Comparison.LastVerified(ctx); err == nil {
		w.last.Store(last)
	}
}

var (
	verifyDifferencesDesc = prometheus.NewDesc("projector_verify_differences",
		"Documents that differed from the source in the last projector verify of all aggregates, or of a sample; every replica says the same; absent before there was one.", nil, nil)
	verifyTimeDesc = prometheus.NewDesc("projector_verify_timestamp_seconds",
		"When the last projector verify of all aggregates, or of a sample, ended, in Unix time; every replica says the same; absent before there was one.", nil, nil)
)

// Describe implements prometheus.Collector.
func (w *VerifyWatch) Describe(ch chan<- *prometheus.Desc) {
	ch <- verifyDifferencesDesc
	ch <- verifyTimeDesc
}

// Collect implements prometheus.Collector.
func (w *VerifyWatch) Collect(ch chan<- prometheus.Metric) {
	if last := w.last.Load(); last != nil {
		ch <- prometheus.MustNewConstMetric(verifyDifferencesDesc, prometheus.GaugeValue, float64(last.Differences))
		ch <- prometheus.MustNewConstMetric(verifyTimeDesc, prometheus.GaugeValue, float64(last.At.Unix()))
	}
}
