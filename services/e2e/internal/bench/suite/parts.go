package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"changerelay/services/e2e/internal/bench/projectorbench"
	"changerelay/services/e2e/internal/bench/results"
	"changerelay/services/e2e/internal/bench/speed"
	"changerelay/services/e2e/internal/check/report"
)

// distances are what is added to each round trip where parts are compared.
func (s Scale) distances() []time.Duration { return slices.Compact([]time.Duration{0, s.Near}) }

func distance(by time.Duration) string {
	if by == 0 {
		return ""
	}
	return fmt.Sprintf(", +%v round trip", by)
}

func perSecond(name string, rate float64) results.Figure {
	return results.One(name, results.PerSecond, rate)
}

func ratio(name string, rate, of float64) results.Figure {
	return results.One(name, results.Ratio, rate/of)
}

func publisher(s Scale) experiment {
	e := experiment{
		name: "publisher", title: "The publisher beside the bare clients",
		shows: fmt.Sprintf("%s events are waiting in the source. In each repetition, one after another in an order that is drawn, each on fresh servers: the bare driver drains the change stream; the bare SDK sends messages as large, in the same batches, over as many links; "+
			"the publisher does both, with saving its checkpoint; the plain loop sends one message, saves the token, and goes on. The ratios are taken within a repetition; the limit is the slower of driver and SDK.",
			report.Thousands(int64(s.Backlog))),
	}
	for i := range s.Repeats {
		for _, by := range s.distances() {
			e.rounds = append(e.rounds, round{
				name: fmt.Sprintf("repetition %d%s", i+1, distance(by)), usual: 6*time.Second + s.Plain + 6*time.Duration(s.Backlog)*50*time.Microsecond,
				measure: func(ctx context.Context, b *bench) ([]results.Point, error) { return b.publisher(ctx, by) },
			})
		}
	}
	return e
}

func (b *bench) publisher(ctx context.Context, by time.Duration) (points []results.Point, err error) {
	c, err := speed.Compare(ctx, b.backlog(b.scale.Backlog/4, by))
	if err != nil {
		return nil, err
	}
	for _, of := range c.Batches {
		got := of.Publisher
		points = append(points, results.Point{Name: of.Batching + " batches" + distance(by), Figures: []results.Figure{
			perSecond("publisher", got.PerSecond), perSecond("bare driver", c.Driver.PerSecond), perSecond("bare SDK", of.SDK.PerSecond), perSecond("plain loop", c.Plain.PerSecond),
			ratio("of the limit", got.PerSecond, min(c.Driver.PerSecond, of.SDK.PerSecond)), ratio("of the plain loop", got.PerSecond, c.Plain.PerSecond),
			cpu("CPU per event, publisher", got.Client), cpu("CPU per event, bare SDK", of.SDK.Client),
			results.One("memory, publisher", results.Bytes, float64(got.Memory)),
		}})
	}
	return points, nil
}

// backlog is a source full of events for the publisher alone.
func (b *bench) backlog(aggregates int, by time.Duration) speed.Config {
	return speed.Config{Open: b.open, Events: b.scale.Backlog, Aggregates: max(aggregates, 1), RoundTrip: by, Plain: b.scale.Plain, Order: b.order}
}

func cpu(name string, d time.Duration) results.Figure {
	return results.One(name, results.Microseconds, float64(d.Nanoseconds())/1e3)
}

// shape is a backlog of messages and its name.
type shape struct {
	name  string
	shape projectorbench.Shape
}

// shapes are those that the projector is measured with. A distant broker is
// asked for less of what it takes long for.
func (s Scale) shapes(by time.Duration) []shape {
	short := sessionsOf10(s.Messages)
	if by > 0 {
		short = sessionsOf10(s.Messages / 4)
	}
	return []shape{
		{"sessions of 10 messages", short},
		{"64 hot sessions", projectorbench.Shape{Sessions: 64, Messages: s.HotMessages}},
	}
}

func sessionsOf10(messages int) projectorbench.Shape {
	return projectorbench.Shape{Sessions: max(messages/10, 1), Messages: 10}
}

func projector(s Scale) experiment {
	e := experiment{
		name: "projector", title: "The projector beside the bare clients",
		shows: "A backlog of messages is waiting in sessions. In each repetition, on the same servers: the bare SDK receives and settles all of it with 64 sessions at once; the bare driver stores a guarded upsert for each message, in an ordered bulk per batch, " +
			"without and with a transaction, which does not fold, and one for each batch (folded), as the projector does where a batch changes one document; the projector does all of it; the plain loop takes one message, writes, completes, and goes on. " +
			"The order is drawn in each repetition, and a row is done when nothing waits in the subscription. The ratios are taken within a repetition; the limit is the slower of receiving and the fastest writing.",
	}
	for i := range s.Repeats {
		for _, by := range s.distances() {
			for _, shape := range s.shapes(by) {
				e.rounds = append(e.rounds, round{
					name: fmt.Sprintf("%s, repetition %d%s", shape.name, i+1, distance(by)), usual: 6*time.Second + time.Duration(shape.shape.Sessions*shape.shape.Messages)*perEvent*2,
					measure: func(ctx context.Context, b *bench) ([]results.Point, error) {
						figures, err := b.projector(ctx, shape.shape, by)
						return []results.Point{{Name: shape.name + distance(by), Figures: figures}}, err
					},
				})
			}
		}
	}
	return e
}

func (b *bench) projector(ctx context.Context, shape projectorbench.Shape, by time.Duration) (figures []results.Figure, err error) {
	s, err := b.open(ctx, projectorbench.Topic())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	r, err := projectorbench.Compare(ctx, s, shape, by, b.scale.PlainMessages, b.order)
	if err != nil {
		return nil, err
	}
	limit := min(r.Receive, max(r.Write, r.Folded, r.Transactions))
	return []results.Figure{
		perSecond("projector", r.Projector), perSecond("bare SDK", r.Receive), perSecond("bare driver", r.Write), perSecond("bare driver, folded", r.Folded), perSecond("bare driver, transactions", r.Transactions),
		perSecond("plain loop", r.Plain), ratio("of the limit", r.Projector, limit), ratio("of the plain loop", r.Projector, r.Plain),
		results.One("memory, projector", results.Bytes, float64(r.ProjectorPeak)),
	}, nil
}
