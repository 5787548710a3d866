package suite

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"changerelay/services/e2e/internal/bench/projectorbench"
	"changerelay/services/e2e/internal/bench/results"
	"changerelay/services/e2e/internal/bench/speed"
	"changerelay/services/e2e/internal/check/report"
)

// growing returns the rounds over steps of a quantity. Each measures a rate and
// compares it with that of the first step in the same repetition.
func growing(s Scale, steps []int, name func(int) string, usual time.Duration, measure func(context.Context, *bench, int) (float64, error)) []round {
	var rounds []round
	for i := range s.Repeats {
		var first float64
		for _, step := range steps {
			rounds = append(rounds, round{
				name: fmt.Sprintf("%s, repetition %d", name(step), i+1), usual: usual,
				measure: func(ctx context.Context, b *bench) ([]results.Point, error) {
					rate, err := measure(ctx, b, step)
					if err != nil {
						return nil, err
					}
					figures := []results.Figure{perSecond("messages", rate)}
					if step == steps[0] {
						first = rate
					}
					if first > 0 {
						figures = append(figures, ratio("of "+name(steps[0]), rate, first))
					}
					return []results.Point{{Name: name(step), Figures: figures}}, nil
				},
			})
		}
	}
	return rounds
}

// counted names a number of things.
func counted(noun string) func(int) string {
	return func(n int) string {
		if n == 1 {
			return "1 " + noun
		}
		return fmt.Sprintf("%d %ss", n, noun)
	}
}

// inNetwork says what is put at a distance, if anything is.
func inNetwork(what string, by time.Duration) string {
	if by == 0 {
		return ""
	}
	return fmt.Sprintf(", and %s +%v round trip, as in a network", what, by)
}

func partitions(s Scale) experiment {
	return experiment{
		name: "partitions", title: "From 1 to 4 partitions",
		shows: fmt.Sprintf("%s events of as many aggregates are waiting%s. Each partition has a publisher process of its own to lead it.", report.Thousands(int64(s.Backlog)), inNetwork("the broker has", s.Far)),
		rounds: growing(s, s.Partitions, counted("partition"), 6*time.Second+time.Duration(s.Backlog)*60*time.Microsecond,
			func(ctx context.Context, b *bench, n int) (float64, error) { return b.partitions(ctx, n) }),
	}
}

func (b *bench) partitions(ctx context.Context, n int) (float64, error) {
	r, err := speed.Publish(ctx, b.backlog(b.scale.Backlog, b.scale.Far), n, map[string]string{"PARTITIONS": strconv.Itoa(n)})
	return r.PerSecond, err
}

func projectors(s Scale) experiment {
	shape := sessionsOf10(s.Messages / 4)
	return experiment{
		name: "projectors", title: "From 1 to 8 projectors",
		shows: fmt.Sprintf("%s messages are waiting in sessions of %d%s. From the start of the processes to the last completion.", report.Thousands(int64(shape.Sessions*shape.Messages)), shape.Messages, inNetwork("both servers have", s.Near)),
		rounds: growing(s, s.Projectors, counted("projector"), 4*time.Second+time.Duration(s.Messages/4)*perEvent*3,
			func(ctx context.Context, b *bench, n int) (float64, error) { return b.projectors(ctx, n, shape) }),
	}
}

func (b *bench) projectors(ctx context.Context, n int, shape projectorbench.Shape) (rate float64, err error) {
	s, err := b.open(ctx, projectorbench.ProjectorTopic())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	return projectorbench.Drain(ctx, s, shape, n, b.scale.Near)
}
