package chaos

import (
	"context"
	"time"

	"changerelay/services/e2e/internal/campaign/modes"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/source"
)

const (
	// mostUnderWay is how many events may be written and not yet applied: the
	// source keeps its history for a time, and a backlog must not outgrow it.
	mostUnderWay = 100_000
	// lookPause is the time between two looks whether the backlog has shrunk.
	lookPause = 100 * time.Millisecond
	// stays is how long an event stays in the source before it is archived.
	stays = time.Minute
	// archivePause is the least time between two removals of archived events.
	archivePause = 10 * time.Second
)

// shop is the source as its owner keeps it: events are written no faster than
// the relay carries them in the long run, and old ones are moved to an archive.
// Deletions are no events, so the relay passes over them. One goroutine at a
// time may use it.
type shop struct {
	to      load.Inserter
	witness *witness.Witness
	// over is closed when there are no more faults, and no more need to wait.
	over <-chan struct{}
	// events is where events are moved away from; nil where none are.
	events *source.Split

	written  []batch // that are still in the source, oldest first
	archived time.Time
}

// batch is one insert.
type batch struct {
	at  time.Time
	ids []string
}

// shop is where the workload writes. What operators do is judged by all that was
// written, and mended from it, and a source in documents mode has nothing to move away.
func (c *campaign) shop(over <-chan struct{}) *shop {
	names := c.cluster.Names()
	s := &shop{to: c.cfg.mode().Writer(c.witness.Client, names), witness: c.witness, over: over}
	if c.cfg.Operators == "" && c.repairs == nil && c.cfg.mode().Documents == nil {
		s.events = modes.Events(c.witness.Client, names)
	}
	return s
}

// Insert implements load.Inserter.
func (s *shop) Insert(ctx context.Context, events []orders.Event) error {
	if err := s.awaitBacklog(ctx); err != nil {
		return err
	}
	if err := s.to.Insert(ctx, events); err != nil {
		return err
	}
	if s.events == nil {
		return nil
	}
	b := batch{at: time.Now(), ids: make([]string, len(events))}
	for i, e := range events {
		b.ids[i] = e.ID()
	}
	s.written = append(s.written, b)
	if time.Since(s.archived) < archivePause {
		return nil
	}
	s.archived = time.Now()
	return s.witness.Archive(ctx, s.events, s.old())
}

// awaitBacklog waits while too much is under way.
func (s *shop) awaitBacklog(ctx context.Context) error {
	look := time.NewTicker(lookPause)
	defer look.Stop()
	for {
		if written, applied := s.witness.Ledger.Counts(); written-applied < mostUnderWay {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.over:
			return nil
		case <-look.C:
		}
	}
}

// old takes the ids of events that have been in the source for long enough.
func (s *shop) old() []string {
	var ids []string
	for len(s.written) > 0 && time.Since(s.written[0].at) >= stays {
		ids = append(ids, s.written[0].ids...)
		s.written = s.written[1:]
	}
	return ids
}
