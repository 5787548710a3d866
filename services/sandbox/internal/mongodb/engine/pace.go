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
	// ResumePerEntry is how long a change stream that is resumed takes for each entry that it passes.
	ResumePerEntry time.Duration
}

// pacer keeps entries that are durable from the readers of the oplog until a majority has them.
type pacer struct {
	pace atomic.Pointer[Pace]

	mu    sync.Mutex
	end   uint64 // after the last entry that is durable
	timer *time.Timer
}

// SetPace changes the pace.
func (e *Engine) SetPace(p Pace) { e.pacer.pace.Store(&p) }

func (p *pacer) now() Pace {
	if pace := p.pace.Load(); pace != nil {
		return *pace
	}
	return Pace{}
}

// show lets readers of the oplog see the entries below end, at the next write of the journal.
func (e *Engine) show(end uint64) {
	interval := e.pacer.now().JournalInterval
	if interval == 0 {
		e.oplog.Advance(end)
		return
	}
	p := &e.pacer
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end = max(p.end, end)
	if p.timer == nil {
		p.timer = time.AfterFunc(interval, func() {
			p.mu.Lock()
			p.timer = nil
			p.mu.Unlock()
			e.Settle()
		})
	}
}

// durable is the end of what is durable, of which readers of the oplog may not see all.
func (p *pacer) durable() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end
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
