package suite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"changerelay/services/e2e/internal/bench/projectorbench"
	"changerelay/services/e2e/internal/bench/results"
	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
)

const (
	// limit is what the world standard lets through in a second: of 1,000 credits a
	// message takes one, and one more at the filter of its subscription, or one to
	// be received and, here, one to be settled.
	limit = 500
	// limitShare is how near to the limit counts as being there.
	limitShare = 0.95
	// limitWindow is over how long that is looked at: the limit is one of whole
	// seconds.
	limitWindow = 3 * time.Second
	// bursts are how many there are.
	bursts = 3
	// calm is how long nothing is written before a burst.
	calm = 5 * time.Second
)

// limitedWorld is the world standard, where settlements cost as well.
func limitedWorld() string {
	return based("standard", nil, map[string]any{"costs": map[string]any{"send": 1, "receive": 1, "peek": 1, "settle": 1, "management": 10, "filter": 1}})
}

func limits(s Scale) experiment {
	e := experiment{
		name: "limits", title: "Under a limit", world: true,
		shows: fmt.Sprintf("The world `standard`: 1,000 credits a second, which are %d messages, and then refusals until the next. The publisher has a backlog of %s events, and then %d bursts of %s after %v of calm each; "+
			"back at the limit is when %.0f %% of it go over %v, from the burst's last write, or all the time until it is sent where that never is. The projector has %s messages in sessions of 20, and settlements cost as well. The whole time counts, with the start.",
			limit, report.Thousands(int64(s.Limited)), bursts, report.Thousands(int64(s.Burst)), calm, limitShare*100, limitWindow, report.Thousands(int64(s.LimitedMessages))),
	}
	for i := range s.Repeats {
		e.rounds = append(e.rounds,
			round{
				name: fmt.Sprintf("publisher, repetition %d", i+1), usual: 30*time.Second + time.Duration((s.Limited+bursts*s.Burst)/limit)*time.Second,
				measure: func(ctx context.Context, b *bench) ([]results.Point, error) {
					figures, err := b.limitedPublisher(ctx)
					return []results.Point{{Name: "publisher", Figures: figures}}, err
				},
			},
			round{
				name: fmt.Sprintf("projector, repetition %d", i+1), usual: 15*time.Second + time.Duration(s.LimitedMessages/limit)*time.Second,
				measure: func(ctx context.Context, b *bench) ([]results.Point, error) {
					figures, err := b.limitedProjector(ctx)
					return []results.Point{{Name: "projector", Figures: figures}}, err
				},
			})
	}
	return e
}

func (b *bench) limitedPublisher(ctx context.Context) (figures []results.Figure, err error) {
	s, err := b.open(ctx, relayTopic())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	names := s.Names(changes)
	began := time.Now().Add(-time.Second)
	next := load.Generated(orders.NewGenerator(seed, max(b.scale.Limited/2, 1)))
	write := func(n int) error {
		l := load.Load{
			To: s.Source(changes), Next: load.Limited(n, next),
			Wrote: func([]orders.Event) {}, Least: time.Hour, // the events end
		}
		return l.Run(ctx, nil)
	}
	if err := write(b.scale.Limited); err != nil {
		return nil, err
	}
	if err := s.Become(ctx, limitedWorld()); err != nil {
		return nil, err
	}
	c, err := s.Services(cluster.Config{
		Publishers: 1, Lease: cluster.LeaseOf(15 * time.Second), Names: names, PublisherEnv: map[string]string{"START_AT": began.UTC().Format(time.RFC3339)},
	})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.StartServices(); err != nil {
		return nil, err
	}
	if _, _, err := c.AwaitLeader(ctx, 0); err != nil {
		return nil, err
	}
	seen, err := b.sending(ctx, c.Publishers[0], b.scale.Limited)
	if err != nil {
		return nil, err
	}
	took := seen[len(seen)-1].at.Sub(seen[0].at)
	rate := float64(b.scale.Limited) / took.Seconds()
	figures = []results.Figure{
		perSecond("messages", rate), ratio("of the limit", rate, limit),
		results.One("refused sends a second", results.PerSecond, float64(seen[len(seen)-1].retries)/took.Seconds()),
	}
	var back time.Duration
	sent := b.scale.Limited
	for range bursts {
		if err := pause(ctx, calm); err != nil {
			return nil, err
		}
		if err := write(b.scale.Burst); err != nil {
			return nil, err
		}
		sent += b.scale.Burst
		seen, err := b.sending(ctx, c.Publishers[0], sent)
		if err != nil {
			return nil, err
		}
		back = max(back, atLimit(seen))
	}
	return append(figures, results.One("back at the limit, longest", results.Seconds, back.Seconds())), nil
}

// progressed is how much a publisher had sent at a time.
type progressed struct {
	at            time.Time
	sent, retries int64
}

// sending looks at a publisher until it has sent so many.
func (b *bench) sending(ctx context.Context, p *cluster.Node, total int) (seen []progressed, err error) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	telling := b.telling()
	for {
		status, err := p.PublisherStatus(ctx)
		if err == nil {
			seen = append(seen, progressed{time.Now(), status.Sent, status.Retries})
			telling.now("%d of %d sent, %d refused", status.Sent, total, status.Retries)
			if status.Sent >= int64(total) {
				return seen, nil
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// atLimit is how long it took until as much went over a window as the limit lets
// through, but for a small share; all the time where that never was.
func atLimit(seen []progressed) time.Duration {
	for i, from := range seen {
		for _, to := range seen[i:] {
			if window := to.at.Sub(from.at); window >= limitWindow {
				if float64(to.sent-from.sent) >= limitShare*limit*window.Seconds() {
					return from.at.Sub(seen[0].at)
				}
				break
			}
		}
	}
	return seen[len(seen)-1].at.Sub(seen[0].at)
}

func (b *bench) limitedProjector(ctx context.Context) (figures []results.Figure, err error) {
	s, err := b.open(ctx, projectorbench.ProjectorTopic())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	shape := projectorbench.Shape{Sessions: max(b.scale.LimitedMessages/20, 1), Messages: 20}
	r, err := projectorbench.DrainInWorld(ctx, s, shape, limitedWorld(), nil)
	if err != nil {
		return nil, err
	}
	return []results.Figure{
		perSecond("messages", r.PerSecond), ratio("of the limit", r.PerSecond, limit), ratio("carried", float64(r.Carried), float64(r.Messages)),
	}, nil
}
