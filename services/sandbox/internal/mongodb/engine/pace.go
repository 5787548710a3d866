package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Pace is how long things take that take no time in one process. It may be changed at any time; the zero Pace is at once.
type Pace struct {
	// Majority is how long a write waits for a majority.
	Majority time.Duration
	// JournalInterval is how often the journal is written, for which change streams and reads of a majority wait; majority.go
	// says more.
	JournalInterval time.Duration
	// Lag is how far the member that a majority needs is behind: how much later a majority has what is in the journal.
	Lag time.Duration
	// ResumePerEntry is how long a change stream that is resumed takes for each entry that it passes.
	ResumePerEntry time.Duration
}

// hides reports whether a majority does not have at once what is written.
func (p Pace) hides() bool { return p.JournalInterval > 0 || p.Lag > 0 }

// pacer writes the journal when its interval is over.
type pacer struct {
	pace atomic.Pointer[Pace]

	mu    sync.Mutex
	timer *time.Timer
}

// SetPace changes the pace, for what is written already as well.
func (e *Engine) SetPace(p Pace) {
	e.pacer.pace.Store(&p)
	if !p.hides() {
		e.settleAll()
		return
	}
	e.commitDue()
}

func (p *pacer) now() Pace {
	if pace := p.pace.Load(); pace != nil {
		return *pace
	}
	return Pace{}
}

// show tells that the entries below end are durable. A majority has them at once, or some time after the journal is written
// next.
func (e *Engine) show(end uint64) {
	pace := e.pacer.now()
	if !pace.hides() {
		e.oplog.Advance(end)
		return
	}
	e.oplog.Apply(end)
	if pace.JournalInterval == 0 {
		e.WriteJournal()
		return
	}
	p := &e.pacer
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == nil {
		p.timer = time.AfterFunc(pace.JournalInterval, func() {
			p.mu.Lock()
			p.timer = nil
			p.mu.Unlock()
			e.WriteJournal()
		})
	}
}

// AwaitScan waits as long as a resumed stream takes to find its first events, of which enough fill a batch. It fails when
// ctx ends.
func (e *Engine) AwaitScan(ctx context.Context, s *Stream, enough int) error {
	perEntry := e.pacer.now().ResumePerEntry
	if perEntry == 0 {
		return nil
	}
	return sleep(ctx, time.Duration(e.oplog.Passed(s.next, enough, s.covers))*perEntry)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
