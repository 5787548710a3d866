package suite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"changerelay/services/e2e/internal/bench/results"
	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/harness/cluster"
)

// warmUp is how long a relay runs before anything counts.
const warmUp = 3 * time.Second

func latency(s Scale) experiment {
	e := experiment{
		name: "latency", title: "From write to readable",
		shows: "How long an event takes at a steady rate, well below what the path carries: from right before its insert is sent until a change stream shows the read document that has come to it. " +
			"Each repetition is all events of " + s.Steady.String() + ".",
	}
	for i := range s.Repeats {
		for _, rate := range s.Rates {
			name := report.Thousands(int64(rate)) + " events/s"
			e.rounds = append(e.rounds, round{
				name: fmt.Sprintf("%s, repetition %d", name, i+1), usual: s.Steady + warmUp + 3*time.Second,
				measure: func(ctx context.Context, b *bench) ([]results.Point, error) {
					figures, err := b.latency(ctx, rate)
					return []results.Point{{Name: name, Figures: figures}}, err
				},
			})
		}
	}
	return e
}

func (b *bench) latency(ctx context.Context, rate int) (figures []results.Figure, err error) {
	cfg := cluster.Config{Publishers: 1, Projectors: 1, Lease: cluster.LeaseOf(15 * time.Second)}
	err = b.watch(ctx, cfg, rate, b.scale.Aggregates, func(ctx context.Context, w watched) error {
		if err := w.arrivals.await(ctx, time.Now()); err != nil {
			return err
		}
		if err := pause(ctx, warmUp); err != nil {
			return err
		}
		from := time.Now()
		if err := pause(ctx, b.scale.Steady); err != nil {
			return err
		}
		to := time.Now()
		if err := w.arrivals.await(ctx, to); err != nil {
			return err
		}
		var took []float64
		for _, s := range w.arrivals.readableAfter(from) {
			if s.written.After(from) && s.written.Before(to) {
				took = append(took, s.took().Seconds())
			}
		}
		if len(took) == 0 {
			return errors.New("nothing was written")
		}
		for _, q := range []struct {
			name  string
			share float64
		}{{"p50", 0.5}, {"p99", 0.99}, {"longest", 1}} {
			figures = append(figures, results.One(q.name, results.Seconds, results.Quantile(took, q.share)))
		}
		return nil
	})
	return figures, err
}

// pause lets a time go by: what is measured is what happens meanwhile.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
