package suite

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"changerelay/services/e2e/internal/bench/results"
)

func halfway(s Scale) experiment {
	e := experiment{
		name: "halfway", title: "The whole path in a data centre", world: true,
		shows: "The whole path in the world `datacenter` (round trip 1.5 ms, majority 5 ms), or that of --world: as fast as it takes events, and then at half of that rate, from right before an event's insert is sent until its read document is seen.",
	}
	for i := range s.Repeats {
		e.rounds = append(e.rounds, round{
			name: fmt.Sprintf("repetition %d", i+1), usual: 15*time.Second + s.Steady + time.Duration(s.Events)*perEvent,
			measure: func(ctx context.Context, b *bench) ([]results.Point, error) {
				figures, err := b.halfway(ctx)
				return []results.Point{{Name: "1 publisher, 1 projector", Figures: figures}}, err
			},
		})
	}
	return e
}

func (b *bench) halfway(ctx context.Context) (figures []results.Figure, err error) {
	err = b.in(cmp.Or(b.cfg.World, based("datacenter", nil, nil)), func() error {
		f := &flow{events: b.scale.Events, aggregates: b.scale.Aggregates}
		if figures, err = f.figures(ctx, b); err != nil {
			return err
		}
		rate := results.Median(figures[0].Values)
		at, err := b.latency(ctx, max(int(rate/2), 1))
		figures = append(figures, results.One("half of it", results.PerSecond, rate/2))
		figures = append(figures, at...)
		return err
	})
	return figures, err
}
