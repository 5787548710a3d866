package broker

import (
	"container/list"
	"context"
	"time"

	"github.com/google/uuid"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// ReceiveMode says when a message leaves the entity.
type ReceiveMode int

// Receive modes. The zero value is PeekLock.
const (
	PeekLock         ReceiveMode = iota // when it is completed
	ReceiveAndDelete                    // when it is delivered
)

// SessionFilter asks for a session: ID, or with Next any that is free and has
// messages.
type SessionFilter struct {
	ID   string
	Next bool
}

// ReceiverOptions of OpenReceiver.
type ReceiverOptions struct {
	Mode    ReceiveMode
	Session *SessionFilter // nil: not a session receiver
	Name    string         // of whoever receives, for people
}

// Receiver takes messages of one entity, or of one session which it holds.
// Receive is for one goroutine at a time; the rest is safe for concurrent use.
type Receiver struct {
	b     *Broker
	store *store
	mode  ReceiveMode
	name  string
	wake  chan struct{} // has room for one

	// Guarded by the broker's lock.
	session   *session // held; nil without and after
	sessionID string
	until     time.Time     // the session lock's end when it was lost
	err       *entity.Error // why it ended
	place     *list.Element // in store.idle
}

// OpenReceiver attaches a receiver to a queue, a subscription
// ("topic/Subscriptions/name") or one's "/$DeadLetterQueue"; paths are not case
// sensitive. A session asked for by name is had at once or refused. For the
// next session it waits: when ctx's deadline passes the error is
// com.microsoft:timeout, when ctx is cancelled it is ctx's.
func (b *Broker) OpenReceiver(ctx context.Context, path string, o ReceiverOptions) (*Receiver, error) {
	b.mu.Lock()
	now := time.Now()
	s, err := b.receivable(path, now)
	if err == nil {
		err = b.purse.admit(b.cfg.Namespace, now)
	}
	if err != nil {
		b.mu.Unlock()
		return nil, err
	}
	r := &Receiver{b: b, store: s, mode: o.Mode, name: o.Name, wake: make(chan struct{}, 1)}
	switch {
	case o.Session == nil && s.sessions != nil:
		err = errSessionRequired()
	case o.Session != nil && s.sessions == nil:
		err = errSessionNotSupported()
	case o.Session == nil:
		s.receivers[r] = struct{}{}
	case !o.Session.Next:
		err = s.acceptNamed(o.Session.ID, r, now)
	case s.ready.Len() > 0:
		s.hold(s.ready.First(), r, now)
	default:
		return b.acceptNext(ctx, s, r) // unlocks
	}
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return r, nil
}

// SessionID of a session receiver, else empty.
func (r *Receiver) SessionID() string { return r.sessionID }

// LockedUntil is the end of the session's lock as of its last renewal; zero
// for a receiver without session.
func (r *Receiver) LockedUntil() time.Time {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	if r.session != nil {
		return r.session.lockedUntil
	}
	return r.until
}

// Receive returns 1 to limit messages, in order. It waits for the first one until
// ctx ends; messages that are ready are returned even when ctx has ended
// already. An *Error is final: the receiver has lost its lock, its entity, or
// was detached or closed.
func (r *Receiver) Receive(ctx context.Context, limit int) ([]*entity.Delivery, error) {
	for {
		deliveries, wait, err := r.receive(limit)
		if err != nil {
			return nil, err
		}
		if wait > 0 {
			if err := r.b.queueUp(ctx, wait); err != nil {
				return nil, err
			}
			continue
		}
		if len(deliveries) > 0 {
			r.b.pause(ctx, r.store.gate, Receiving)
			return deliveries, nil
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
			r.b.mu.Lock()
			r.stopWaiting()
			r.store.wakeIdle() // the wake-up may have been this receiver's
			r.b.mu.Unlock()
			return nil, ctx.Err()
		}
	}
}

// receive takes what is ready, or else makes the receiver wait, for a time where the namespace gives nothing before.
func (r *Receiver) receive(limit int) ([]*entity.Delivery, time.Duration, error) {
	r.b.mu.Lock()
	now := time.Now()
	r.checkLock(now)
	if r.err != nil {
		r.b.mu.Unlock()
		return nil, 0, r.err
	}
	most, wait := r.b.delivering(limit, now)
	if wait > 0 {
		r.b.mu.Unlock()
		return nil, wait, nil
	}
	deliveries := r.takeReady(most, now)
	r.b.delivered(deliveries, now)
	if r.session == nil {
		r.stopWaiting()
		if len(deliveries) == 0 {
			r.place = r.store.idle.PushBack(r)
		}
		r.store.wakeIdle()
	}
	if err := r.b.unlockAndCommit(); err != nil {
		return nil, 0, err
	}
	return deliveries, 0, nil
}

func (r *Receiver) takeReady(limit int, now time.Time) []*entity.Delivery {
	s := r.store
	available := &s.available
	if r.session != nil {
		available = &r.session.available
	}
	var deliveries []*entity.Delivery
	for available.Len() > 0 && len(deliveries) < limit {
		e := available.First()
		s.take(e)
		if e.expired(now) {
			s.expire(e, now)
			s.b.log.divide(recordSize)
			continue
		}
		deliveries = append(deliveries, r.deliver(e, r.mode, now))
	}
	return deliveries
}

func (r *Receiver) deliver(e *entry, mode ReceiveMode, now time.Time) *entity.Delivery {
	s := r.store
	s.totals.delivered++
	s.accessed = now
	if mode == ReceiveAndDelete {
		d := e.delivery()
		s.totals.completed++
		s.remove(e)
		return d
	}
	s.lock(e, r, now)
	return e.delivery()
}

// checkLock notices a session lock that is over before its alarm has rung.
func (r *Receiver) checkLock(now time.Time) {
	if r.session != nil && !now.Before(r.session.lockedUntil) {
		r.session.expire(now)
	}
}

func (r *Receiver) rouse() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *Receiver) stopWaiting() {
	if r.place != nil {
		r.store.idle.Remove(r.place)
		r.place = nil
	}
}

// lostSession tells a session receiver that has ended.
func (r *Receiver) lostSession() bool { return r.store.sessions != nil && r.session == nil }

// forget ends the receiver, whose session is freed elsewhere.
func (r *Receiver) forget(err *entity.Error) {
	if r.session != nil {
		r.until = r.session.lockedUntil
		r.session = nil
	}
	r.err = err
	delete(r.store.receivers, r)
	r.stopWaiting()
	r.rouse()
}

// end ends the receiver. Its unsettled messages of a session go back as they
// were; others stay locked until their locks expire.
func (r *Receiver) end(err *entity.Error, now time.Time) {
	if r.err != nil {
		return
	}
	if r.session != nil {
		r.session.release(err, (*store).putBack, now)
		return
	}
	r.forget(err)
}

// Close detaches. A session is free at once and its unsettled messages are back
// at their places, their delivery count as it was; messages of other entities
// stay locked until they are settled by token or their lock expires.
func (r *Receiver) Close() {
	r.b.mu.Lock()
	now := time.Now()
	r.checkLock(now)
	r.end(&entity.Error{Condition: entity.ConditionOperationCancelled, Description: "The receiver is closed."}, now)
	r.b.mu.Unlock()
}

// Settle carries out an outcome for a message this receiver was given.
func (r *Receiver) Settle(token uuid.UUID, o entity.Outcome) error {
	return r.b.settle(r.store, func(now time.Time) error {
		r.checkLock(now)
		e := r.store.locked[token]
		if e == nil || e.lock.holder != r {
			if r.lostSession() {
				return errSessionLockLost()
			}
			return errMessageLockLost()
		}
		return r.store.settle(e, o, now)
	})
}
