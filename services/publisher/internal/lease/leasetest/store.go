// Package leasetest has a lease store that misbehaves on request, and the suite
// that every lease store must pass.
package leasetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"changerelay/services/publisher/internal/lease"
)

// Op names a call of lease.Store.
type Op string

// The calls.
const (
	Read    Op = "read"
	Take    Op = "take"
	Renew   Op = "renew"
	Release Op = "release"
)

// Fault says how one call goes wrong. The zero Fault is a call that works.
type Fault struct {
	// Err is returned instead of the answer.
	Err error
	// Applied makes the change although Err is returned: a lost reply.
	Applied bool
	// Hang blocks until the caller's context ends.
	Hang bool
	// Delay comes before the change and the answer. A call that is given up
	// meanwhile is still applied when the delay is over.
	Delay time.Duration
	// Lag comes after a change and before its answer: a majority has it then.
	Lag time.Duration
}

// ErrInjected is a fault's usual error.
var ErrInjected = errors.New("injected fault")

// Store is a lease.Store in memory whose server has a clock of its own. The
// zero Store is ready, with the local clock.
type Store struct {
	// Clock is the server's clock; nil means time.Now.
	Clock func() time.Time
	// Fault is asked before each call of holder ("" for a read); nil means none.
	Fault func(op Op, holder lease.Holder) Fault
	// WatchFails makes every watch fail.
	WatchFails bool

	mu       sync.Mutex
	record   stored                 // guarded by mu
	exists   bool                   // guarded by mu
	watchers map[chan struct{}]bool // guarded by mu
	calls    map[Op]int             // guarded by mu
	applying sync.WaitGroup
}

type stored struct {
	holder                 lease.Holder
	subject                string
	heartbeatAt, expiresAt time.Time
}

// Read implements lease.Store.
func (s *Store) Read(ctx context.Context) (lease.Record, error) {
	return s.call(ctx, Read, lease.Holder{}, func() (lease.Record, bool) { return s.view(), false })
}

// Take implements lease.Store.
func (s *Store) Take(ctx context.Context, claim lease.Claim) (lease.Record, error) {
	return s.call(ctx, Take, claim.Holder, func() (lease.Record, bool) {
		held := s.record.holder
		var mine bool
		if held.SameProcess(claim.Holder) {
			mine = held.Tenure < claim.Holder.Tenure
		} else {
			mine = held.ID == claim.Holder.ID && claim.OverOwnID
		}
		if s.view().Live() && !mine {
			return s.view(), false
		}
		s.extend(claim.Holder, claim.Subject, claim.TTL)
		return s.view(), true
	})
}

// Renew implements lease.Store.
func (s *Store) Renew(ctx context.Context, holder lease.Holder, ttl time.Duration) (lease.Record, error) {
	return s.call(ctx, Renew, holder, func() (lease.Record, bool) {
		if !s.exists || s.record.holder != holder {
			return lease.Record{}, false
		}
		s.extend(holder, s.record.subject, ttl)
		return s.view(), true
	})
}

// Release implements lease.Store.
func (s *Store) Release(ctx context.Context, holder lease.Holder) (bool, error) {
	record, err := s.call(ctx, Release, holder, func() (lease.Record, bool) {
		if !s.exists || s.record.holder != holder {
			return lease.Record{}, false
		}
		s.record = stored{heartbeatAt: s.record.heartbeatAt, expiresAt: s.now()}
		return lease.Record{Holder: holder}, true
	})
	return record.Holder == holder, err
}

// Watch implements lease.Watcher.
func (s *Store) Watch(ctx context.Context, changed func()) error {
	if s.WatchFails {
		return ErrInjected
	}
	wake := make(chan struct{}, 1)
	s.mu.Lock()
	if s.watchers == nil {
		s.watchers = map[chan struct{}]bool{}
	}
	s.watchers[wake] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, wake)
	}()
	changed()
	for {
		select {
		case <-wake:
			changed()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Delete removes the record, as an operator or a TTL index would.
func (s *Store) Delete() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record, s.exists = stored{}, false
	s.notify()
}

// Current returns the record as it stands.
func (s *Store) Current() lease.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view()
}

// Calls returns how often op was called.
func (s *Store) Calls(op Op) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[op]
}

// Settle waits until calls that were given up have been applied.
func (s *Store) Settle() { s.applying.Wait() }

// call runs one atomic step, with the fault that is due.
func (s *Store) call(ctx context.Context, op Op, holder lease.Holder, step func() (lease.Record, bool)) (lease.Record, error) {
	s.mu.Lock()
	if s.calls == nil {
		s.calls = map[Op]int{}
	}
	s.calls[op]++
	var fault Fault
	if s.Fault != nil {
		fault = s.Fault(op, holder)
	}
	s.mu.Unlock()
	if fault.Hang {
		<-ctx.Done()
		return lease.Record{}, ctx.Err()
	}
	if fault.Delay > 0 {
		answer := make(chan lease.Record, 1)
		s.applying.Go(func() {
			time.Sleep(fault.Delay) //nolint:forbidigo // the fake server's own latency, inside a synctest bubble
			answer <- s.apply(step, fault)
		})
		select {
		case record := <-answer:
			return record, fault.Err
		case <-ctx.Done():
			return lease.Record{}, ctx.Err()
		}
	}
	if err := ctx.Err(); err != nil {
		return lease.Record{}, err
	}
	record := s.apply(step, fault)
	if fault.Lag > 0 && op != Read {
		timer := time.NewTimer(fault.Lag)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return lease.Record{}, ctx.Err()
		}
	}
	return record, fault.Err
}

func (s *Store) apply(step func() (lease.Record, bool), fault Fault) lease.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fault.Err != nil && !fault.Applied {
		return lease.Record{}
	}
	record, changed := step()
	if changed {
		s.notify()
	}
	if fault.Err != nil {
		return lease.Record{}
	}
	return record
}

func (s *Store) extend(holder lease.Holder, subject string, ttl time.Duration) {
	now := s.now()
	s.record, s.exists = stored{holder: holder, subject: subject, heartbeatAt: now, expiresAt: now.Add(ttl)}, true
}

func (s *Store) view() lease.Record {
	if !s.exists {
		return lease.Record{}
	}
	return lease.Record{
		Holder:      s.record.holder,
		Remaining:   s.record.expiresAt.Sub(s.now()),
		Subject:     s.record.subject,
		HeartbeatAt: s.record.heartbeatAt,
		ExpiresAt:   s.record.expiresAt,
	}
}

func (s *Store) now() time.Time {
	if s.Clock != nil {
		return s.Clock()
	}
	return time.Now()
}

func (s *Store) notify() {
	for watcher := range s.watchers {
		select {
		case watcher <- struct{}{}:
		default:
		}
	}
}
