package suite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"changerelay/services/e2e/internal/bench/projectorbench"
	"changerelay/services/e2e/internal/bench/results"
)

func sessions(s Scale) experiment {
	distant := ""
	if len(s.Distances) > 1 {
		distant = ", and each round trip takes longer and longer"
	}
	e := experiment{
		name: "sessions", title: "Taking sessions",
		shows: "A backlog of messages is waiting in short sessions" + distant + ". In each repetition, on the same servers: the projector as it is (SERVICEBUS_RECEIVER=amqp), the projector with the official client (sdk), " +
			"the bare SDK, which only receives and settles, and the bare AMQP client, which also stores a guarded upsert for each message; all with 64 sessions at once.",
	}
	for i := range s.Repeats {
		for _, messages := range []int{2, 10} {
			for _, by := range s.Distances {
				// A distant broker is asked for less of what it takes long for.
				shape := projectorbench.Shape{Sessions: max(s.ShortSessions/int(1+by/(5*time.Millisecond)), 1), Messages: messages}
				name := fmt.Sprintf("%d messages a session%s", messages, distance(by))
				e.rounds = append(e.rounds, round{
					name: fmt.Sprintf("%s, repetition %d", name, i+1), usual: 8*time.Second + time.Duration(shape.Sessions)*(5*time.Millisecond+by),
					measure: func(ctx context.Context, b *bench) ([]results.Point, error) {
						figures, err := b.sessions(ctx, shape, by)
						return []results.Point{{Name: name, Figures: figures}}, err
					},
				})
			}
		}
	}
	return e
}

func (b *bench) sessions(ctx context.Context, shape projectorbench.Shape, by time.Duration) (figures []results.Figure, err error) {
	s, err := b.open(ctx, projectorbench.SessionsTopic())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	r, err := projectorbench.Sessions(ctx, s, shape, by)
	if err != nil {
		return nil, err
	}
	figures = []results.Figure{
		perSecond("projector", r.AMQP.PerSecond), perSecond("projector, sdk", r.SDK.PerSecond), perSecond("bare SDK", r.BareSDK), ratio("of the bare SDK", r.AMQP.PerSecond, r.BareSDK),
		cpu("CPU per event, projector", r.AMQP.CPU), cpu("CPU per event, projector, sdk", r.SDK.CPU),
		results.One("memory, projector", results.Bytes, float64(r.AMQP.Peak)), results.One("memory, projector, sdk", results.Bytes, float64(r.SDK.Peak)),
	}
	if r.BareAMQP > 0 {
		figures = append(figures, perSecond("bare AMQP, with writes", r.BareAMQP), ratio("of bare AMQP", r.AMQP.PerSecond, r.BareAMQP))
	}
	return figures, nil
}
