package watch

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"changerelay/services/projector/internal/readmodel"
)

// Ledger is what /status shows of the group's ledger.
type Ledger struct {
	Lines int64 `json:"lines"`
	// Latest is its last line; absent where there is none.
	Latest *readmodel.Decision `json:"latest,omitempty"`
}

// LedgerWatch is the last look into the ledger.
type LedgerWatch struct {
	Last atomic.Pointer[Ledger] // nil before the first look that succeeded
}

// Look reads the ledger. Where that fails what was seen before stays: no line is
// ever taken away.
func (w *LedgerWatch) Look(ctx context.Context, store *readmodel.Store) {
	latest, lines, err := store.LatestDecision(ctx)
	if err != nil {
		return
	}
	if latest != nil && len(latest.About) > shownNames {
		latest.About = latest.About[:shownNames]
	}
	w.Last.Store(&Ledger{lines, latest})
}

// shownNames bounds the names that /status shows of a line.
const shownNames = 10

var ledgerDesc = prometheus.NewDesc("projector_ledger_lines",
	"Decisions in the ledger that left events out or accepted what is not proven; every replica says the same; absent until known.", nil, nil)

// Describe implements prometheus.Collector.
func (w *LedgerWatch) Describe(ch chan<- *prometheus.Desc) { ch <- ledgerDesc }

// Collect implements prometheus.Collector.
func (w *LedgerWatch) Collect(ch chan<- prometheus.Metric) {
	if last := w.Last.Load(); last != nil {
		ch <- prometheus.MustNewConstMetric(ledgerDesc, prometheus.GaugeValue, float64(last.Lines))
	}
}
