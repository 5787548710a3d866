package watch

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/readmodel"
)

// EmptiedWatch is the last look for read collections that were emptied or dropped.
type EmptiedWatch struct {
	Log zerolog.Logger

	last atomic.Pointer[map[string]bool] // nil before the first look that succeeded
}

// Look looks, and says of each collection once that it was emptied. Where it fails
// what was seen before stays. Looks come one after another.
func (w *EmptiedWatch) Look(ctx context.Context, store *readmodel.Store) error {
	emptied, err := store.NoteEmptied(ctx)
	if err != nil {
		return err
	}
	now := map[string]bool{}
	for _, e := range emptied {
		now[e.Collection] = true
		if before := w.last.Load(); before == nil || !(*before)[e.Collection] {
			w.Log.Error().Str("collection", e.Collection).Str("problem", e.String()).
				Msg("a read collection was emptied or dropped, and what was applied to it does not come again")
		}
	}
	w.last.Store(&now)
	return nil
}

// Collections are the names of those that were emptied.
func (w *EmptiedWatch) Collections() (names []string) {
	if last := w.last.Load(); last != nil {
		names = slices.Sorted(maps.Keys(*last))
	}
	return names
}

var emptiedDesc = prometheus.NewDesc("projector_emptied_collections",
	"Read collections that were emptied or dropped, though no event did; every replica says the same; absent until known.", nil, nil)

// Describe implements prometheus.Collector.
func (w *EmptiedWatch) Describe(ch chan<- *prometheus.Desc) { ch <- emptiedDesc }

// Collect implements prometheus.Collector.
func (w *EmptiedWatch) Collect(ch chan<- prometheus.Metric) {
	if last := w.last.Load(); last != nil {
		ch <- prometheus.MustNewConstMetric(emptiedDesc, prometheus.GaugeValue, float64(len(*last)))
	}
}
