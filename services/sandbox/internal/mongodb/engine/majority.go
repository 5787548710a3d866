package engine

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
)

// The visible end of the oplog is the majority commit point. Change streams
// show what is below it, reads of a majority the collections as they were at
// it, and a writer that waits for a majority is answered once it has passed
// what was written: the three never disagree.
//
// It moves from the end of one generation of writes to that of the next. A
// generation ends when the journal is written: at each journal interval, or as
// soon as somebody waits for it. A majority has it Pace.Lag later. Until then
// the collections are kept as they were before its first write to them.
//
// Without a Pace streams wait for nothing: what they show, a majority has.
// Reads of a majority keep to the journal then as well, until a stream shows
// more or somebody waits for a majority.

// defaultJournalInterval is storage.journal.commitIntervalMs, which reads of a
// majority keep to without a Pace.
const defaultJournalInterval = 100 * time.Millisecond

// mostGenerations is how many a lag is divided into at least: those that end
// closer together become one.
const mostGenerations = 64

// unsettled are the generations that a majority does not have yet: those that
// have ended, the oldest first, and the present one. Engine.mu guards it.
type unsettled struct {
	ended   []generation
	present generation
	// timer commits the next that has ended.
	timer *time.Timer
}

// generation are writes that a majority gets together.
type generation struct {
	// before are the collections as they were before its first write to them, and
	// began is when the first was kept, by the server's clock.
	before map[oplog.Namespace]kept
	began  time.Time
	// end and position are those of the oplog and the journal at its end, ended is
	// when that was, and endedFirst when that was before others became one with it.
	end               uint64
	position          int64
	ended, endedFirst time.Time
}

// kept is a collection as it was; the zero kept is one that was not there.
type kept struct {
	table *storage.Table
	uuid  uuid.UUID
}

// join adds a later generation, with whose end this one ends.
func (g *generation) join(later generation) {
	for ns, before := range later.before {
		if _, kept := g.before[ns]; !kept {
			g.keep(ns, before)
		}
	}
	g.end, g.position, g.ended = later.end, later.position, later.ended
}

func (g *generation) keep(ns oplog.Namespace, before kept) {
	if g.before == nil {
		g.before = map[oplog.Namespace]kept{}
	}
	g.before[ns] = before
}

// before is a collection as a majority has it, if that is not as it is now.
func (u *unsettled) before(ns oplog.Namespace) (kept, bool) {
	for i := range u.ended {
		if before, kept := u.ended[i].before[ns]; kept {
			return before, true
		}
	}
	before, kept := u.present.before[ns]
	return before, kept
}

// retain keeps a collection as it is, for reads of a majority, before the
// generation's first write to it. It needs mu.
func (e *Engine) retain(ns oplog.Namespace) {
	e.giveUp()
	present := &e.unsettled.present
	if _, kept := present.before[ns]; kept {
		return
	}
	if present.before == nil {
		present.began = e.config.Now()
	}
	var now kept
	if coll := e.collections[ns]; coll != nil {
		now = kept{table: coll.snapshot(), uuid: coll.uuid}
	}
	present.keep(ns, now)
}

// retainName is retain before a collection comes or goes, which reads of a
// majority see at once without a Pace. It needs mu.
func (e *Engine) retainName(ns oplog.Namespace) {
	if e.pacer.now().hides() {
		e.retain(ns)
		return
	}
	delete(e.unsettled.present.before, ns)
}

// giveUp forgets what is kept without a Pace when the journal has been written
// since. It needs mu.
func (e *Engine) giveUp() {
	if !e.pacer.now().hides() && e.config.Now().Sub(e.unsettled.present.began) >= defaultJournalInterval {
		e.unsettled.present = generation{}
	}
}

// giveUpOld gives up what is kept of collections that nobody writes to any more.
func (e *Engine) giveUpOld() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.giveUp()
}

// MajorityView takes a view of what a majority has of a collection.
func (e *Engine) MajorityView(ns oplog.Namespace) *View {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.giveUp()
	if before, kept := e.unsettled.before(ns); kept {
		return &View{table: before.table}
	}
	if coll := e.collections[ns]; coll != nil {
		return &View{table: coll.snapshot()}
	}
	return &View{}
}

// majorityTable is what a majority has of a collection that a stream shows an
// event of, nil for nothing. It needs mu.
func (e *Engine) majorityTable(ns oplog.Namespace, id uuid.UUID) *storage.Table {
	if e.pacer.now().hides() {
		if before, kept := e.unsettled.before(ns); kept {
			if before.uuid != id {
				return nil
			}
			return before.table
		}
	}
	if coll := e.collections[ns]; coll != nil && coll.uuid == id {
		return coll.table
	}
	return nil
}

// AwaitMajority waits until a majority has what is written. It fails when ctx
// ends.
func (e *Engine) AwaitMajority(ctx context.Context) error {
	end, _ := e.oplog.Applied()
	if err := e.AwaitJournal(ctx); err != nil {
		return err
	}
	return e.oplog.Wait(ctx, end-1)
}

// AwaitJournal waits until what is written is in the journal of this member. It
// fails when ctx ends.
func (e *Engine) AwaitJournal(ctx context.Context) error {
	if err := sleep(ctx, e.pacer.now().Majority); err != nil {
		return err
	}
	e.WriteJournal()
	return nil
}

// AwaitTime waits until a majority has what was written up to a time that has
// been given out. It fails when ctx ends.
func (e *Engine) AwaitTime(ctx context.Context, at oplog.Timestamp) error {
	if !e.pacer.now().hides() {
		e.settleAll() // streams have what reads of a majority may not have yet
	}
	if e.CommittedTime() >= at {
		return nil
	}
	e.WriteJournal()
	after, _ := e.oplog.Seek(at + 1)
	return e.oplog.Wait(ctx, after-1)
}

// WriteJournal ends the present generation, without the time that it takes.
func (e *Engine) WriteJournal() {
	if !e.pacer.now().hides() {
		e.settleAll()
		return
	}
	e.mu.Lock()
	e.endGeneration()
	e.mu.Unlock()
	e.commitDue()
}

// endGeneration needs mu.
func (e *Engine) endGeneration() {
	u := &e.unsettled
	g := u.present
	u.present = generation{}
	if end, _ := e.oplog.End(); end == e.end {
		return // nothing was written
	}
	g.end, g.position, g.ended = e.end, e.position, time.Now()
	g.endedFirst = g.ended
	if n := len(u.ended); n > 0 {
		last := &u.ended[n-1]
		if last.end == g.end {
			return
		}
		if g.ended.Sub(last.endedFirst) < e.pacer.now().Lag/mostGenerations {
			last.join(g)
			return
		}
	}
	u.ended = append(u.ended, g)
}

// commitDue lets a majority have the generations whose time has come.
func (e *Engine) commitDue() {
	due, found := e.nextDue()
	if !found {
		return
	}
	if e.journal != nil && e.journal.Commit(due.position) != nil {
		return // the next write says so too
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	u := &e.unsettled
	later := slices.IndexFunc(u.ended, func(g generation) bool { return g.end > due.end })
	if later < 0 {
		later = len(u.ended)
	}
	u.ended = slices.Delete(u.ended, 0, later)
	e.oplog.Advance(due.end)
}

// nextDue is the last generation whose time has come, if any, and sets the timer for
// the next.
func (e *Engine) nextDue() (due generation, found bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	u, lag := &e.unsettled, e.pacer.now().Lag
	for _, g := range u.ended {
		if rest := lag - time.Since(g.ended); rest > 0 {
			if u.timer == nil {
				u.timer = time.AfterFunc(rest, e.commitDue)
			} else {
				u.timer.Reset(rest)
			}
			break
		}
		due, found = g, true
	}
	return due, found
}

// settleAll lets a majority have all that is written, at once.
func (e *Engine) settleAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unsettled.ended, e.unsettled.present = nil, generation{}
	end, _ := e.oplog.Applied()
	e.oplog.Advance(end)
}

// Shown tells that change streams have shown what they see.
func (e *Engine) Shown() {
	if !e.pacer.now().hides() {
		e.settleAll()
	}
}
