package watch

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/rate"
	"changerelay/services/projector/internal/readmodel"
)

// Progress is how far each projection of this process is. It counts what is stored, and
// asks nobody. There are as many as the process has projections, whatever comes.
type Progress struct {
	names  []string // sorted
	of     map[string]*progress
	halted atomic.Pointer[map[string]int64] // nil before the first look
}

// progress is that of one projection.
type progress struct {
	// fills: the projection is a version that is filled, and has come to no event but
	// those that it has written.
	fills                   bool
	applied, halts, skipped atomic.Int64
	position                atomic.Int64 // seconds since 1970 of the latest change; 0 before the first
	lag                     lag
	meter                   *rate.Meter
}

// NewProgress returns the progress of projections, of which some are filled.
func NewProgress(projections, filled projection.Projections) *Progress {
	p := &Progress{of: map[string]*progress{}}
	for _, one := range projections {
		made := &progress{fills: slices.ContainsFunc(filled, func(f projection.Projection) bool { return f.Name() == one.Name() })}
		made.meter = rate.New(made.applied.Load)
		p.names, p.of[one.Name()] = append(p.names, one.Name()), made
	}
	slices.Sort(p.names)
	return p
}

// Run keeps the rates until ctx ends.
func (p *Progress) Run(ctx context.Context) error {
	var group errgroup.Group
	for _, one := range p.of {
		group.Go(func() error {
			one.meter.Run(ctx)
			return nil
		})
	}
	return group.Wait()
}

// Projected implements delivery.Observer. A projection that does not follow the event has
// come to it as well.
func (p *Progress) Projected(e *contract.Event, fills bool, writes []projection.Write, outcomes []delivery.Outcome) {
	now := time.Now()
	at, timed := changedAt(e)
	for name, one := range p.of {
		wrote, applied, repeated, skipped := false, false, false, false
		for i := range min(len(writes), len(outcomes)) {
			if writes[i].Projection == name {
				wrote = true
				applied = applied || outcomes[i] == delivery.Applied && writes[i].Changes()
				repeated = repeated || outcomes[i] == delivery.Repeated || outcomes[i] == delivery.Recorded
				skipped = skipped || outcomes[i] == delivery.Applied && writes[i].Skipped != nil
			}
		}
		if !wrote && (fills || one.fills) {
			continue
		}
		if applied {
			one.applied.Add(1)
		}
		if skipped {
			one.skipped.Add(1)
		}
		if timed {
			raise(&one.position, at.Unix())
		}
		// What is sent again is old, and says nothing of how long it takes.
		if timed && !repeated && !one.fills && e.Resend == (contract.Resend{}) {
			one.lag.note(now, now.Sub(at))
		}
	}
}

// changedAt is when a change was made, by its cluster time, or else by the event's own.
func changedAt(e *contract.Event) (at time.Time, known bool) {
	if seconds, _, err := e.Position.ClusterTime(); err == nil {
		return time.Unix(int64(seconds), 0), true
	}
	return e.Time, !e.Time.IsZero()
}

// raise has a number be at least n.
func raise(number *atomic.Int64, n int64) {
	for old := number.Load(); old < n && !number.CompareAndSwap(old, n); old = number.Load() {
		continue
	}
}

// Halted implements delivery.Observer.
func (p *Progress) Halted(name string) {
	if one := p.of[name]; one != nil {
		one.halts.Add(1)
	}
}

// Look counts the group's halted aggregates by projection. Where it fails what was seen
// before stays.
func (p *Progress) Look(ctx context.Context, store *readmodel.Store) error {
	halted, err := store.Halts.CountBy(ctx)
	if err == nil {
		p.halted.Store(&halted)
	}
	return err
}

// Projections is how far each projection is, by name.
func (p *Progress) Projections(engine Engine) map[string]readmodel.Progress {
	all := make(map[string]readmodel.Progress, len(p.of))
	for name, one := range p.of {
		all[name] = p.one(name, one, engine)
	}
	return all
}

func (p *Progress) one(name string, one *progress, engine Engine) readmodel.Progress {
	shown := readmodel.Progress{Projection: name, Applied: one.applied.Load(), AppliedPerSecond: one.meter.PerSecond(), Halts: one.halts.Load(), Skipped: one.skipped.Load()}
	if seconds := one.position.Load(); seconds > 0 {
		at := time.Unix(seconds, 0).UTC()
		shown.PositionAt = &at
	}
	if lag, known := one.lag.current(engine); known && !one.fills {
		seconds := lag.Seconds()
		shown.LagSeconds = &seconds
	}
	if halted := p.halted.Load(); halted != nil {
		n := (*halted)[name]
		shown.HaltedAggregates = &n
	}
	return shown
}

var (
	ofProjection    = []string{"projection"}
	projAppliedDesc = prometheus.NewDesc("projector_projection_applied_total",
		"Events whose writes to the projection's documents were stored.", ofProjection, nil)
	projHaltsDesc = prometheus.NewDesc("projector_projection_halts_total",
		"Aggregates that this process halted because the projection could not apply an event.", ofProjection, nil)
	projSkippedDesc = prometheus.NewDesc("projector_projection_skipped_total",
		"Events that the projection could not apply and that were skipped by its policy (onError).", ofProjection, nil)
	projPositionDesc = prometheus.NewDesc("projector_projection_position_timestamp_seconds",
		"When the latest change was made that this process has dealt with for the projection; absent before the first.", ofProjection, nil)
	projLagDesc = prometheus.NewDesc("projector_projection_lag_seconds",
		"How far the projection is behind, as projector_lag_seconds; absent until known, and while it is filled by a rebuild.", ofProjection, nil)
	projHaltedDesc = prometheus.NewDesc("projector_projection_halted_aggregates",
		"Aggregates that are halted because of the projection, in the whole group; every replica says the same; absent until known.", ofProjection, nil)
)

// Collector is the progress for /metrics.
func (p *Progress) Collector(engine Engine) prometheus.Collector {
	return progressCollector{p, engine}
}

type progressCollector struct {
	*Progress
	engine Engine
}

// Describe implements prometheus.Collector.
func (c progressCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{projAppliedDesc, projHaltsDesc, projSkippedDesc, projPositionDesc, projLagDesc, projHaltedDesc} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (c progressCollector) Collect(ch chan<- prometheus.Metric) {
	for _, name := range c.names {
		shown := c.one(name, c.of[name], c.engine)
		ch <- prometheus.MustNewConstMetric(projAppliedDesc, prometheus.CounterValue, float64(shown.Applied), name)
		ch <- prometheus.MustNewConstMetric(projHaltsDesc, prometheus.CounterValue, float64(shown.Halts), name)
		ch <- prometheus.MustNewConstMetric(projSkippedDesc, prometheus.CounterValue, float64(shown.Skipped), name)
		if shown.PositionAt != nil {
			ch <- prometheus.MustNewConstMetric(projPositionDesc, prometheus.GaugeValue, float64(shown.PositionAt.Unix()), name)
		}
		if shown.LagSeconds != nil {
			ch <- prometheus.MustNewConstMetric(projLagDesc, prometheus.GaugeValue, *shown.LagSeconds, name)
		}
		if shown.HaltedAggregates != nil {
			ch <- prometheus.MustNewConstMetric(projHaltedDesc, prometheus.GaugeValue, float64(*shown.HaltedAggregates), name)
		}
	}
}
