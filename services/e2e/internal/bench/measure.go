package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"changerelay/services/e2e/internal/load"
	"changerelay/services/e2e/internal/orders"
	"changerelay/services/e2e/internal/poll"
	"changerelay/services/e2e/internal/report"
	"changerelay/services/e2e/internal/source"
)

// progressEvery is how often a line of progress is printed.
const progressEvery = 2 * time.Second

// counter counts what one goroutine adds and others read.
type counter struct{ n atomic.Int64 }

func (c *counter) add(n int) { c.n.Add(int64(n)) }

func (c *counter) value() int { return int(c.n.Load()) }

// throttled holds inserts back while too many events are under way.
type throttled struct {
	to     load.Inserter
	behind func(context.Context) int
	most   int
}

// Insert implements load.Inserter.
func (t *throttled) Insert(ctx context.Context, events []orders.Event) error {
	err := poll.Until(ctx, "the backlog to shrink", func(ctx context.Context) (bool, string) {
		n := t.behind(ctx)
		return n < t.most, fmt.Sprint(n)
	})
	if err != nil {
		return err
	}
	return t.to.Insert(ctx, events)
}

// applied is how many messages the projectors have completed, as far as they
// answer. Nothing is killed and nothing else is on the topic, so that is how many
// events went through.
func (b *Bench) applied(ctx context.Context) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	var n int64
	for _, p := range b.cluster.Projectors {
		if s, err := p.ProjectorStatus(ctx); err == nil {
			b.completed[p] = s.Completed
		}
		n += b.completed[p]
	}
	return int(n)
}

func (b *Bench) behind(ctx context.Context) int { return b.written.value() - b.applied(ctx) }

// progress prints how it goes until done is closed.
func (b *Bench) progress(ctx context.Context, began time.Time, done <-chan struct{}) error {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	last, at := 0, began
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-done:
			return nil
		case <-tick.C:
			n := b.applied(ctx)
			rate := float64(n-last) / time.Since(at).Seconds()
			last, at = n, time.Now()
			fmt.Fprintf(b.out, "%6.1fs  written %s  applied %s (%s/s)\n", time.Since(began).Seconds(),
				report.Thousands(int64(b.written.value())), report.Thousands(int64(n)), report.Thousands(int64(rate)))
		}
	}
}

func (b *Bench) setup() []report.Fact {
	return []report.Fact{
		{Name: "processes", Text: fmt.Sprintf("1 sandbox, %d publishers, %d projectors, on this machine", b.cfg.Publishers, b.cfg.Projectors)},
		{Name: "events", Text: fmt.Sprintf("seed %d, %s events of %s orders, at most %s under way", b.cfg.Seed,
			report.Thousands(int64(b.cfg.Events)), report.Thousands(int64(b.cfg.Aggregates)), report.Thousands(int64(b.cfg.Backlog)))},
	}
}

func (b *Bench) figures(w *source.Writer) []report.Figure {
	return []report.Figure{
		{Name: "events", Value: float64(b.cfg.Events), Unit: report.Count},
		{Name: "time from first write to last apply", Value: b.through.Seconds(), Unit: report.Seconds},
		{Name: "events a second, end to end", Value: float64(b.cfg.Events) / b.through.Seconds(), Unit: report.PerSecond},
		{Name: "time of writing", Value: b.writing.Seconds(), Unit: report.Seconds, Note: "held back by the backlog allowed"},
		{Name: "inserts tried again", Value: float64(w.Retries()), Unit: report.Count},
	}
}

// nodes tells what every process took.
func (b *Bench) nodes() []report.Node {
	var nodes []report.Node
	for _, n := range b.cluster.Nodes() {
		u := n.Usage()
		nodes = append(nodes, report.Node{
			Name: n.Name, ResidentBytes: u.ResidentBytes, CPUSeconds: u.CPU.Seconds(),
			CPUMicrosecondsPerEvent: float64(u.CPU.Microseconds()) / float64(b.cfg.Events),
		})
	}
	return nodes
}
