package suite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"changerelay/services/e2e/internal/bench/results"
	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/poll"
)

const (
	// failoverRate is low, so that the machine's speed hardly counts.
	failoverRate = 200
	// slack is what a takeover may take over the lease, and a handover in all.
	slack = time.Second
	// failoverTimeout bounds one failover.
	failoverTimeout = 2 * time.Minute
)

// departure is a way in which a leader goes, and how it comes back.
type departure struct {
	name     string
	does     func(*cluster.Node) error
	undo     func(context.Context, *cluster.Node) error
	promised func(lease time.Duration) time.Duration
}

func departures() []departure {
	crashed := func(lease time.Duration) time.Duration { return lease + slack }
	return []departure{
		{
			name: "SIGKILL", promised: crashed,
			does: func(n *cluster.Node) error { n.Kill(); return nil },
			undo: func(_ context.Context, n *cluster.Node) error { return n.Start() },
		},
		{
			name: "SIGSTOP", promised: crashed,
			does: (*cluster.Node).Pause,
			undo: func(_ context.Context, n *cluster.Node) error { return n.Resume() },
		},
		{
			name: "SIGTERM", promised: func(time.Duration) time.Duration { return slack },
			does: (*cluster.Node).Terminate,
			undo: func(ctx context.Context, n *cluster.Node) error {
				if status, err := n.Wait(ctx); err != nil || status != 0 {
					return fmt.Errorf("%s ended with status %d: %w", n.Name, status, err)
				}
				return n.Start()
			},
		},
	}
}

func failover(s Scale) experiment {
	e := experiment{
		name: "failover", title: "Failover",
		shows: fmt.Sprintf("The leading publisher of two gets a signal, at any moment of its heartbeat, %d times each, under %d events/s, with a lease of %v. "+
			"The longest wait is that of the event that took longest to be readable from right before its insert: after SIGKILL and SIGSTOP the rest of the lease and a takeover, "+
			"after SIGTERM a handover. It grows with LEASE_TTL.", s.Failovers, failoverRate, s.Lease),
	}
	for _, h := range departures() {
		e.rounds = append(e.rounds, round{
			name: fmt.Sprintf("%s, %d times", h.name, s.Failovers), usual: time.Duration(s.Failovers) * (h.promised(s.Lease) + time.Second/2),
			measure: func(ctx context.Context, b *bench) ([]results.Point, error) {
				figures, err := b.failovers(ctx, h)
				return []results.Point{{Name: h.name, Figures: figures}}, err
			},
		})
	}
	return e
}

// failovers makes them one after another on one relay.
func (b *bench) failovers(ctx context.Context, h departure) ([]results.Figure, error) {
	longest := results.Figure{Name: "longest wait", Unit: results.Seconds, Promised: h.promised(b.scale.Lease).Seconds()}
	led := results.Figure{Name: "until another leads", Unit: results.Seconds}
	rng := rand.New(rand.NewPCG(seed, 0x6661696c))
	cfg := cluster.Config{Publishers: 2, Projectors: 1, Lease: cluster.LeaseOf(b.scale.Lease)}
	err := b.watch(ctx, cfg, failoverRate, 1000, func(ctx context.Context, w watched) error {
		for i := range b.scale.Failovers {
			// A failover at one phase of the heartbeat would always take as long.
			if err := pause(ctx, time.Duration(rng.Int64N(int64(cfg.Lease.Heartbeat)))); err != nil {
				return err
			}
			wait, next, err := failOver(ctx, w, h)
			if err != nil {
				return fmt.Errorf("%s, %d of %d: %w", h.name, i+1, b.scale.Failovers, err)
			}
			longest.Values = append(longest.Values, wait.Seconds())
			led.Values = append(led.Values, next.Seconds())
			if (i+1)%5 == 0 {
				b.say("        %s: %d of %d", h.name, i+1, b.scale.Failovers)
			}
		}
		return nil
	})
	if len(longest.Values) == 0 {
		return nil, err
	}
	return []results.Figure{longest, led}, err
}

// failOver makes one failover, and sees to it that both publishers are up
// before and after. It returns how long the event waited that waited longest,
// and how long it was until another publisher said that it leads.
func failOver(ctx context.Context, w watched, h departure) (longest, led time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, failoverTimeout, fmt.Errorf("it took longer than %v", failoverTimeout))
	defer cancel()
	if err := ready(ctx, w); err != nil {
		return 0, 0, err
	}
	old, status, err := w.cluster.AwaitLeader(ctx, 0)
	if err != nil {
		return 0, 0, err
	}
	signal := time.Now()
	if err := h.does(old); err != nil {
		return 0, 0, err
	}
	if _, _, err := w.cluster.AwaitLeader(ctx, status.Term); err != nil {
		return 0, 0, err
	}
	next := time.Now()
	if err := w.arrivals.await(ctx, next); err != nil {
		return 0, 0, err
	}
	for _, s := range w.arrivals.readableAfter(signal) {
		longest = max(longest, s.took())
	}
	return longest, next.Sub(signal), h.undo(ctx, old)
}

// ready waits until one publisher leads, all others stand by, and events get
// through.
func ready(ctx context.Context, w watched) error {
	for _, p := range w.cluster.Publishers {
		err := poll.Until(ctx, p.Name+" to be up", func(ctx context.Context) (bool, string) {
			s, err := p.PublisherStatus(ctx)
			return err == nil && s.Role != "", fmt.Sprint(err)
		})
		if err != nil {
			return err
		}
	}
	err := poll.Until(ctx, "one publisher to lead", func(ctx context.Context) (bool, string) {
		n := 0
		for _, p := range w.cluster.Publishers {
			if s, err := p.PublisherStatus(ctx); err == nil && s.Leads() {
				n++
			}
		}
		return n == 1, report.Thousands(int64(n)) + " lead"
	})
	if err != nil {
		return err
	}
	return w.arrivals.await(ctx, time.Now())
}
