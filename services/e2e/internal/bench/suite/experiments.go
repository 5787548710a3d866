package suite

import (
	"context"
	"fmt"
	"time"

	"changerelay/services/e2e/internal/bench/results"
	"changerelay/services/e2e/internal/check/report"
)

// experiments are all there are, in the order in which they run.
func experiments(s Scale) []experiment {
	return []experiment{
		path(s), latency(s), failover(s), publisher(s), projector(s), sessions(s), crowd(s), partitions(s), projectors(s), sizes(s), spreads(s),
		limits(s), links(s), mixture(s), resume(s), copies(s), repair(s), halfway(s),
	}
}

// perEvent is what an event of the whole path usually takes, to estimate by.
const perEvent = 300 * time.Microsecond

// flows returns the rounds that carry the same way again and again, in turn.
func flows(s Scale, names []string, flowOf func(i int) *flow) []round {
	var rounds []round
	for repetition := range s.Repeats {
		for i, name := range names {
			rounds = append(rounds, round{
				name: fmt.Sprintf("%s, repetition %d", name, repetition+1), usual: 3*time.Second + time.Duration(flowOf(i).events)*perEvent,
				measure: func(ctx context.Context, b *bench) ([]results.Point, error) {
					figures, err := flowOf(i).figures(ctx, b)
					return []results.Point{{Name: name, Figures: figures}}, err
				},
			})
		}
	}
	return rounds
}

func path(s Scale) experiment {
	return experiment{
		name: "path", title: "The whole path",
		shows: fmt.Sprintf("%s events of %s orders are written as fast as the path takes them, with at most %s on their way, and go through one publisher and one projector into a projection with counters, sets and a history. "+
			"From the first write to the last apply. A run counts only if the read model is equal to its recomputation.",
			report.Thousands(int64(s.Events)), report.Thousands(int64(s.Aggregates)), report.Thousands(backlog)),
		rounds: flows(s, []string{"1 publisher, 1 projector"}, func(int) *flow { return &flow{events: s.Events, aggregates: s.Aggregates} }),
	}
}

func sizes(s Scale) experiment {
	var names []string
	for _, size := range s.Sizes {
		names = append(names, fmt.Sprintf("%g KB", float64(size.Bytes)/1000))
	}
	return experiment{
		name: "sizes", title: "Document size",
		shows: "The whole path with source documents of a size, all of which goes to the read model (the default projection). Bodies above COMPRESS_ABOVE travel compressed; the content is random letters and digits, which compress to three quarters.",
		rounds: flows(s, names, func(i int) *flow {
			return &flow{events: s.Sizes[i].Events, aggregates: max(s.Sizes[i].Events/10, 1), size: s.Sizes[i].Bytes}
		}),
	}
}

func spreads(s Scale) experiment {
	var names []string
	for _, aggregates := range s.Spreads {
		names = append(names, report.Thousands(int64(aggregates))+" aggregates")
	}
	return experiment{
		name: "aggregates", title: "Number of aggregates",
		shows: fmt.Sprintf("The whole path with the same %s events spread over more and more aggregates: from few long sessions, whose events are received and written together, to a session for nearly every event.", report.Thousands(int64(s.Events/2))),
		rounds: flows(s, names, func(i int) *flow {
			return &flow{events: max(s.Events/2, 1), aggregates: s.Spreads[i]}
		}),
	}
}
