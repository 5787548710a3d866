package engine

import (
	"context"
	"time"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
)

// A majority of one member has a write when it is in the journal. That is
// written at each journal interval, or as soon as somebody waits for it. Until
// then reads of a majority see the collection as it was before, and change
// streams do not see the write. Without a Pace streams wait for nothing: what
// they show, a majority has.

// defaultJournalInterval is storage.journal.commitIntervalMs, which reads of a
// majority keep to without a Pace as well.
const defaultJournalInterval = 100 * time.Millisecond

// unsettled are the collections with writes that a majority does not have yet,
// as they were before. Guarded by Engine.mu.
type unsettled struct {
	since       time.Time
	collections map[*collection]*storage.Table
}

// retain keeps a collection as it is, for reads of a majority, before the first
// write that nobody waits for. It needs mu.
func (e *Engine) retain(coll *collection) {
	now := e.config.Now()
	e.giveUp(now)
	if _, kept := e.unsettled.collections[coll]; kept {
		return
	}
	if e.unsettled.collections == nil {
		e.unsettled = unsettled{since: now, collections: map[*collection]*storage.Table{}}
	}
	e.unsettled.collections[coll] = coll.snapshot()
}

// giveUp forgets what is kept when the journal has been written since. It needs
// mu.
func (e *Engine) giveUp(now time.Time) {
	interval := e.pacer.now().JournalInterval
	if interval == 0 {
		interval = defaultJournalInterval
	}
	if now.Sub(e.unsettled.since) >= interval {
		e.unsettled.collections = nil
	}
}

// MajorityView takes a view of what a majority has of a collection.
func (e *Engine) MajorityView(ns oplog.Namespace) *View {
	e.mu.Lock()
	defer e.mu.Unlock()
	coll := e.collections[ns]
	if coll == nil {
		return &View{}
	}
	e.giveUp(e.config.Now())
	if before := e.unsettled.collections[coll]; before != nil {
		return &View{table: before}
	}
	return &View{table: coll.snapshot()}
}

// AwaitMajority waits until a majority has what is written. It fails when ctx
// ends.
func (e *Engine) AwaitMajority(ctx context.Context) error {
	end := e.pacer.durable()
	if err := sleep(ctx, e.pacer.now().Majority); err != nil {
		return err
	}
	e.written(end)
	return nil
}

// Settle lets a majority have all that is written, without the time it takes.
func (e *Engine) Settle() { e.written(e.pacer.durable()) }

// Shown tells that change streams have shown what they see.
func (e *Engine) Shown() {
	if e.pacer.now().JournalInterval == 0 {
		e.Settle()
	}
}

// written lets readers of the oplog see the entries below end, and readers of
// collections everything.
func (e *Engine) written(end uint64) {
	e.mu.Lock()
	e.unsettled.collections = nil
	e.mu.Unlock()
	e.oplog.Advance(end)
}

// settleOld gives up what is kept of collections that nobody writes to any more.
func (e *Engine) settleOld(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.giveUp(now)
}
