// Package election is the replica set's one member as clients see it come and go
// as the primary.
package election

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// Election is the state of the replica set: its one member is the primary, or,
// after it has been told to step down, a secondary that will stand again.
//
//	primary ──replSetStepDown──▶ secondary ──time, replSetFreeze 0, replSetStepUp──▶ primary, next term
//
// Whoever writes holds writers, so that a step-down ends when the last write of
// the term has.
type Election struct {
	engine  *engine.Engine
	writers sync.RWMutex

	mu sync.Mutex // guards what follows
	Standing
	// leaving tells that a step-down waits for the last writes.
	leaving bool
	// changed is closed, and replaced, with every change.
	changed chan struct{}
	// standAt is when a secondary stands for election.
	standAt time.Time
}

// Standing is what clients are told of the replica set.
type Standing struct {
	Primary bool
	Term    int64
	// Counter counts the changes of the above (TopologyVersion).
	Counter int64
}

// New begins with an elected primary. Terms start at the clock's
// seconds, so that those of a server that is started again follow: drivers
// ignore a primary of an earlier term.
func New(e *engine.Engine) *Election {
	el := &Election{engine: e, changed: make(chan struct{})}
	el.Standing = Standing{Primary: true, Term: time.Now().Unix(), Counter: 6}
	e.Lead(el.Term)
	return el
}

// Now is the present standing.
func (el *Election) Now() Standing {
	el.mu.Lock()
	defer el.mu.Unlock()
	return el.Standing
}

// Await returns when the standing is not that with the counter any more, after
// a time, or with the error of a context that ends.
func (el *Election) Await(ctx context.Context, counter int64, most time.Duration) error {
	el.mu.Lock()
	changed, same := el.changed, el.Counter == counter
	el.mu.Unlock()
	if !same {
		return nil
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// change makes a change known. It needs mu.
func (el *Election) change() {
	el.Counter++
	close(el.changed)
	el.changed = make(chan struct{})
}

// ErrNotPrimary is what a secondary answers to a write.
func ErrNotPrimary() error {
	return mongoerr.New(mongoerr.NotWritablePrimary, "not master")
}

// Enter lets a write in; leave ends it.
func (el *Election) Enter() (leave func(), err error) {
	el.writers.RLock()
	el.mu.Lock()
	defer el.mu.Unlock()
	switch {
	case el.leaving:
		err = mongoerr.New(mongoerr.InterruptedDueToReplStateChange, "operation was interrupted")
	case !el.Primary:
		err = ErrNotPrimary()
	default:
		return el.writers.RUnlock, nil
	}
	el.writers.RUnlock()
	return nil, err
}

// betweenAborts is the pause between two looks at whether the last writes of a
// term have ended.
const betweenAborts = time.Millisecond

// StepDown makes the primary a secondary that stands again after a time. Open
// transactions are aborted; cursors stay.
func (el *Election) StepDown(ctx context.Context, period time.Duration) error {
	el.mu.Lock()
	if !el.Primary || el.leaving {
		el.mu.Unlock()
		return ErrNotPrimary()
	}
	el.leaving = true
	el.mu.Unlock()
	// Writes that wait for a transaction would wait for ever: nobody can commit
	// it any more. Those that came in before may still begin one.
	for !el.writers.TryLock() {
		el.engine.AbortTransactions()
		timer := time.NewTimer(betweenAborts)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			el.mu.Lock()
			defer el.mu.Unlock()
			el.leaving = false
			return context.Cause(ctx)
		}
	}
	defer el.writers.Unlock()
	el.mu.Lock()
	defer el.mu.Unlock()
	el.engine.AbortTransactions()
	el.engine.Follow()
	el.leaving, el.Primary, el.standAt = false, false, time.Now().Add(period)
	el.change()
	return nil
}

// Freeze puts off the election of a secondary; without a period it is elected
// before freeze returns.
func (el *Election) Freeze(period time.Duration) error {
	el.mu.Lock()
	defer el.mu.Unlock()
	if el.Primary {
		return mongoerr.New(mongoerr.NotSecondary, "cannot freeze node when primary or running for election. state: Primary")
	}
	if period == 0 {
		el.elect()
		return nil
	}
	el.standAt = time.Now().Add(period)
	el.change()
	return nil
}

// StepUp elects a secondary at once.
func (el *Election) StepUp() {
	el.mu.Lock()
	defer el.mu.Unlock()
	if !el.Primary {
		el.elect()
	}
}

// elect makes the secondary the primary of the next term. It needs mu.
func (el *Election) elect() {
	el.Primary = true
	el.Term++
	el.engine.Lead(el.Term)
	el.change()
}

// Run elects the secondary when its time has come, until ctx ends.
func (el *Election) Run(ctx context.Context) error {
	for {
		el.mu.Lock()
		changed, wait := el.changed, time.Until(el.standAt)
		if el.Primary {
			wait = time.Hour // it does not stand: only a change matters
		}
		el.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			el.standIfDue()
		case <-changed:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}

func (el *Election) standIfDue() {
	el.mu.Lock()
	due := !el.Primary && !time.Now().Before(el.standAt)
	el.mu.Unlock()
	if due {
		el.StepUp()
	}
}

// ElectionID is greater the later the term.
func (s Standing) ElectionID() bson.ObjectID {
	id := bson.ObjectID{0x7f, 0xff, 0xff, 0xff}
	binary.BigEndian.PutUint64(id[4:], uint64(s.Term))
	return id
}
