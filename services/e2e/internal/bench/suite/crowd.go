package suite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"changerelay/services/e2e/internal/bench/projectorbench"
	"changerelay/services/e2e/internal/bench/results"
	"changerelay/services/e2e/internal/check/report"
)

// hotSessions never run empty while a crowd waits: half as many as a projector holds.
const hotSessions = 32

func crowd(s Scale) experiment {
	e := experiment{
		name: "crowd", title: "Sessions that wait beside some that never end",
		shows: fmt.Sprintf("%s sessions of one message come as fast as they can be sent, to one projector with the defaults that serves none, or %d, sessions that get 10 messages every 50 ms all the time. The longest wait is from the first send until the last of those that came is readable.",
			report.Thousands(int64(s.Crowd)), hotSessions),
	}
	for i := range s.Repeats {
		for _, hot := range []int{0, hotSessions} {
			name := fmt.Sprintf("beside %d that never end", hot)
			e.rounds = append(e.rounds, round{
				name: fmt.Sprintf("%s, repetition %d", name, i+1), usual: 5*time.Second + time.Duration(s.Crowd)*time.Millisecond,
				measure: func(ctx context.Context, b *bench) ([]results.Point, error) {
					figures, err := b.crowd(ctx, hot)
					return []results.Point{{Name: name, Figures: figures}}, err
				},
			})
		}
	}
	return e
}

func (b *bench) crowd(ctx context.Context, hot int) (figures []results.Figure, err error) {
	s, err := b.open(ctx, projectorbench.ProjectorTopic())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	r, err := projectorbench.Crowd(ctx, s, b.scale.Crowd, hot)
	if err != nil {
		return nil, err
	}
	figures = []results.Figure{
		perSecond("sessions", r.PerSecond), results.One("longest wait", results.Seconds, r.Longest.Seconds()),
		results.One("memory, projector", results.Bytes, float64(r.Peak)),
	}
	if hot > 0 {
		figures = append(figures, perSecond("changes of those that never end", r.Hot))
	}
	return figures, nil
}
