package suite

import (
	"context"
	"fmt"
	"time"

	"changerelay/services/e2e/internal/bench/results"
	"changerelay/services/e2e/internal/check/report"
)

// mixtureBound is what each process may have resident, in bytes, with messages of
// all sizes.
const mixtureBound = 256 << 20

// allSizes are those of the documents of a mixture, in turn: up to what fits in a
// message of 1 MB.
var allSizes = []int{200, 700_000, 2_000, 50_000, 200, 300_000, 1_000, 10_000}

func mixture(s Scale) experiment {
	e := experiment{
		name: "mixture", title: "Messages of all sizes", world: true,
		shows: fmt.Sprintf("The whole path with %s source documents of %s to %s bytes, with the defaults, and with bounds on bytes so wide that they bind nothing (MAX_IN_FLIGHT_BYTES, GOMEMLIMIT).",
			report.Thousands(int64(s.Mixed)), report.Thousands(200), report.Thousands(700_000)),
	}
	wide := map[string]string{"MAX_IN_FLIGHT_BYTES": "1073741824", "GOMEMLIMIT": "8GiB"}
	for i := range s.Repeats {
		var bounded float64
		for _, way := range []struct {
			name string
			env  map[string]string
		}{{"with the defaults", nil}, {"without a bound", wide}} {
			e.rounds = append(e.rounds, round{
				name: fmt.Sprintf("%s, repetition %d", way.name, i+1), usual: 5*time.Second + time.Duration(s.Mixed)*3*time.Millisecond,
				measure: func(ctx context.Context, b *bench) ([]results.Point, error) {
					f := &flow{events: s.Mixed, aggregates: max(s.Mixed/10, 1), sizes: allSizes, env: way.env}
					var figures []results.Figure
					err := b.in(based("loopback", nil, map[string]any{"max_message_bytes": 1 << 20}), func() (err error) {
						figures, err = f.figures(ctx, b)
						return err
					})
					if err != nil {
						return nil, err
					}
					publisher, projector := f.cluster.Publishers[0].Usage(), f.cluster.Projectors[0].Usage()
					cpu := (publisher.CPU + projector.CPU).Seconds()
					if way.env == nil {
						bounded = cpu
						if most := max(publisher.ResidentBytes, projector.ResidentBytes); most > mixtureBound {
							err = fmt.Errorf("%d MiB were resident, more than %d", most>>20, mixtureBound>>20)
						}
					} else if bounded > 0 {
						figures = append(figures, ratio("CPU with the defaults, of this", bounded, cpu))
					}
					return []results.Point{{Name: way.name, Figures: figures}}, err
				},
			})
		}
	}
	return e
}
