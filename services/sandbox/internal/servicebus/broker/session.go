package broker

import (
	"cmp"
	"slices"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
	"changerelay/services/sandbox/internal/servicebus/heap"
)

// session is one session of a store. It exists while it has messages, a state
// or a holder; its messages are linked in the order of their arrival.
type session struct {
	id         string
	store      *store
	head, tail *entry
	messages   int
	available  heap.Heap[*entry]
	locked     map[*entry]struct{}

	state     []byte // nil: none
	updatedAt time.Time

	holder      *Receiver
	lockedUntil time.Time
	alarm       alarm // of the lock
	index       int   // in the store's heap of ready sessions; -1: not in it
}

// session returns the session, made if it is not there.
func (s *store) session(id string) *session {
	x := s.sessions[id]
	if x == nil {
		x = &session{id: id, store: s, available: newAvailable(), locked: map[*entry]struct{}{}, index: -1}
		x.alarm = newAlarm(x)
		s.sessions[id] = x
	}
	return x
}

// newReady orders free sessions by their oldest available message.
func newReady() heap.Heap[*session] {
	return heap.New(
		func(x, y *session) bool { return x.available.First().order < y.available.First().order },
		func(x *session, index int) { x.index = index },
	)
}

func (x *session) link(e *entry) {
	e.session = x
	e.prev = x.tail
	if x.tail != nil {
		x.tail.next = e
	} else {
		x.head = e
	}
	x.tail = e
	x.messages++
}

func (x *session) unlink(e *entry) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		x.head = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		x.tail = e.prev
	}
	e.prev, e.next = nil, nil
	x.messages--
	x.forgetIfEmpty()
}

func (x *session) forgetIfEmpty() {
	if x.messages == 0 && x.state == nil && x.holder == nil {
		delete(x.store.sessions, x.id)
	}
}

// offer makes an entry available to the holder, or the session to whoever
// waits for one.
func (x *session) offer(e *entry, now time.Time) {
	x.available.Push(e)
	switch {
	case x.holder != nil:
		x.holder.rouse()
	case x.index >= 0:
		x.store.ready.Fix(x.index)
	default:
		x.offerSelf(now)
	}
}

// offerSelf hands a free session with messages to the accept that has waited
// longest, or puts it among the ready ones.
func (x *session) offerSelf(now time.Time) {
	if x.available.Len() == 0 {
		return
	}
	if front := x.store.accepts.Front(); front != nil {
		front.Value.(*accept).grant(x, now)
		return
	}
	x.store.ready.Push(x)
}

func (x *session) take(e *entry) {
	first := e.index == 0
	if first && x.index >= 0 { // its place among the ready ones depends on the first
		x.store.ready.Remove(x.index)
		x.available.Remove(e.index)
		if x.available.Len() > 0 {
			x.store.ready.Push(x)
		}
		return
	}
	x.available.Remove(e.index)
}

// lockFor gives a free session to a receiver.
func (x *session) lockFor(r *Receiver, now time.Time) {
	if x.index >= 0 {
		x.store.ready.Remove(x.index)
	}
	x.holder = r
	r.session = x
	r.sessionID = x.id
	x.renew(now)
}

func (x *session) renew(now time.Time) {
	x.lockedUntil = now.Add(x.store.terms.lockDuration)
	x.store.b.set(&x.alarm, x.lockedUntil)
}

// ring ends a session's lock that was not renewed in time.
func (x *session) ring(_ *Broker, now time.Time) { x.expire(now) }

// expire takes the session from its holder and counts the deliveries that it
// left unsettled.
func (x *session) expire(now time.Time) {
	x.store.totals.expired++
	x.release(errSessionLockLost(), (*store).fail, now)
}

// release frees a held session. back returns each unsettled message.
func (x *session) release(err *entity.Error, back func(*store, *entry, time.Time), now time.Time) {
	r := x.holder
	x.store.b.unset(&x.alarm)
	r.forget(err)
	for _, e := range x.unsettled() {
		back(x.store, e, now)
		x.store.b.log.divide(recordSize)
	}
	x.holder = nil
	x.offerSelf(now)
	x.forgetIfEmpty()
}

// unsettled are the locked entries by arrival.
func (x *session) unsettled() []*entry {
	if len(x.locked) == 0 {
		return nil
	}
	entries := make([]*entry, 0, len(x.locked))
	for e := range x.locked {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b *entry) int { return cmp.Compare(a.order, b.order) })
	return entries
}
