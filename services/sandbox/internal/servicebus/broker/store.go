package broker

import (
	"container/list"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/btree"

	"changerelay/services/sandbox/internal/servicebus/entity"
	"changerelay/services/sandbox/internal/servicebus/heap"
)

// store holds the messages of a queue, a subscription or a dead-letter queue,
// and those of a topic that wait for their scheduled time. Everything in it is
// guarded by the broker's lock.
type store struct {
	b     *Broker
	id    uint64 // in the journal
	path  string
	inlet *inlet // the queue or topic it belongs to
	gate  *gate
	terms terms
	dead  *store // its dead-letter queue; nil in one and in a topic's waiting room

	// source, of a dead-letter queue, is whose dead letters it holds; they keep
	// the numbers that they got there.
	source *store

	numbers  numbers
	arrivals uint64
	bySeq    *btree.BTreeG[*entry]
	locked   map[uuid.UUID]*entry

	available heap.Heap[*entry] // empty on a session entity
	idle      *list.List        // of *Receiver: waiting for a message, in turn

	sessions map[string]*session // nil: no sessions
	ready    heap.Heap[*session] // free and with messages, by their oldest
	accepts  *list.List          // of *accept: waiting for a session, in turn

	receivers map[*Receiver]struct{}
	counts    entity.Counts
	totals    totals
	accessed  time.Time // last sent to or received from
}

// terms are the settings of an entity that govern its messages. Of a
// dead-letter queue only the lock duration counts: there messages stay until
// somebody takes them.
type terms struct {
	lockDuration      time.Duration
	maxDeliveries     uint32        // 0: any number
	timeToLive        time.Duration // Forever: none
	deadLetterExpired bool
	status            entity.Status
}

func queueTerms(p entity.QueueProperties) terms {
	return terms{
		lockDuration: p.LockDuration, maxDeliveries: uint32(p.MaxDeliveryCount),
		timeToLive: p.DefaultMessageTimeToLive, deadLetterExpired: p.DeadLetteringOnMessageExpiration,
		status: p.Status,
	}
}

func subscriptionTerms(p entity.SubscriptionProperties) terms {
	return terms{
		lockDuration: p.LockDuration, maxDeliveries: uint32(p.MaxDeliveryCount),
		timeToLive: p.DefaultMessageTimeToLive, deadLetterExpired: p.DeadLetteringOnMessageExpiration,
		status: p.Status,
	}
}

type totals struct{ received, delivered, completed, expired int64 }

func newStore(b *Broker, id uint64, path string, in *inlet, g *gate, t terms, sessions bool) *store {
	s := &store{
		b: b, id: id, path: path, inlet: in, gate: g, terms: t,
		bySeq:     btree.NewBTreeGOptions(func(x, y *entry) bool { return x.seq < y.seq }, btree.Options{NoLocks: true}),
		locked:    map[uuid.UUID]*entry{},
		available: newAvailable(),
		idle:      list.New(),
		accepts:   list.New(),
		receivers: map[*Receiver]struct{}{},
	}
	b.stores[id] = s
	b.lastID = max(b.lastID, id)
	s.numbers.partitioned = in.partitioned
	if sessions {
		s.sessions = map[string]*session{}
		s.ready = newReady()
	}
	return s
}

// addDeadLetters gives a queue's or subscription's store its dead-letter queue.
func (s *store) addDeadLetters() {
	s.dead = newStore(s.b, s.id+1, s.path+"/$DeadLetterQueue", s.inlet, s.gate, s.terms, false)
	s.dead.source = s
}

func newAvailable() heap.Heap[*entry] {
	return heap.New(
		func(x, y *entry) bool { return x.order < y.order },
		func(e *entry, index int) { e.index = index },
	)
}

func (s *store) isDeadLetter() bool { return s.source != nil }

// numbers gives sequence numbers. A partitioned entity counts in each
// partition and puts its number into the top 16 bits; a session stays in one
// partition, so its messages' numbers rise all the same.
type numbers struct {
	partitioned bool
	last        [partitions]int64
}

const (
	partitions     = 16
	partitionShift = 48
)

func (n *numbers) next(partition int16) int64 {
	if !n.partitioned {
		partition = 0
	}
	n.last[partition]++
	return int64(partition)<<partitionShift | n.last[partition]
}

// put adds a message at the end.
func (s *store) put(e *entry, now time.Time) {
	s.accessed = now
	e.store = s
	e.hold()
	e.quota.used += e.marks.size()
	s.arrivals++
	e.order = s.arrivals
	e.index = -1
	s.bySeq.Set(e)
	s.count(e.state, 1)
	if s.sessions != nil && e.state != entity.StateScheduled {
		s.session(*e.msg.SessionID).link(e)
	}
	at := e.expiresAt
	if e.state == entity.StateScheduled {
		at = e.msg.ScheduledEnqueueTime
	}
	if e.state == entity.StateScheduled || !at.IsZero() {
		e.alarm = &lifetime{entry: e}
		e.alarm.alarm = newAlarm(e.alarm)
		s.b.set(&e.alarm.alarm, at)
	}
	s.b.log.put(e)
	if e.state == entity.StateActive {
		s.offer(e, now)
	}
}

// remove takes an entry out for good.
func (s *store) remove(e *entry) {
	s.b.log.remove(e)
	s.discard(e)
}

func (s *store) discard(e *entry) {
	s.unlock(e)
	s.take(e)
	if e.alarm != nil {
		s.b.unset(&e.alarm.alarm)
	}
	s.bySeq.Delete(e)
	s.count(e.state, -1)
	e.drop()
	e.quota.used -= e.marks.size()
	if e.session != nil {
		e.session.unlink(e)
	}
}

// offer makes an entry available and wakes who waits for it.
func (s *store) offer(e *entry, now time.Time) {
	if e.expired(now) {
		s.expire(e, now)
		return
	}
	if e.session != nil {
		e.session.offer(e, now)
		return
	}
	s.available.Push(e)
	s.wakeIdle()
}

// take makes an entry unavailable.
func (s *store) take(e *entry) {
	if e.index < 0 {
		return
	}
	if e.session != nil {
		e.session.take(e)
		return
	}
	s.available.Remove(e.index)
}

// wakeIdle wakes the receiver that has waited longest.
func (s *store) wakeIdle() {
	if front := s.idle.Front(); front != nil && s.available.Len() > 0 {
		front.Value.(*Receiver).stopWaiting()
		front.Value.(*Receiver).rouse()
	}
}

func (s *store) lock(e *entry, r *Receiver, now time.Time) {
	e.lock = newLock(e, r)
	s.locked[e.lock.token] = e
	if e.session != nil {
		e.session.locked[e] = struct{}{}
		return
	}
	s.b.set(&e.lock.alarm, now.Add(s.terms.lockDuration))
}

func (s *store) unlock(e *entry) {
	if e.lock == nil {
		return
	}
	s.b.unset(&e.lock.alarm)
	delete(s.locked, e.lock.token)
	if e.session != nil {
		delete(e.session.locked, e)
	}
	e.lock = nil
}

// putBack ends a lock and leaves the entry where it was before.
func (s *store) putBack(e *entry, now time.Time) {
	s.unlock(e)
	if e.state == entity.StateActive {
		s.offer(e, now)
	}
}

// fail ends a lock and counts the delivery; one too many is the last. A
// dead-letter queue counts none.
func (s *store) fail(e *entry, now time.Time) {
	if s.isDeadLetter() {
		s.putBack(e, now)
		return
	}
	e.failed++
	if s.terms.maxDeliveries > 0 && e.failed >= s.terms.maxDeliveries {
		s.deadLetter(e, "MaxDeliveryCountExceeded",
			fmt.Sprintf("Message could not be consumed after %d delivery attempts.", s.terms.maxDeliveries), now)
		return
	}
	s.b.log.change(e)
	s.putBack(e, now)
}

// expire ends a message that has outlived its time.
func (s *store) expire(e *entry, now time.Time) {
	if s.terms.deadLetterExpired && s.dead != nil {
		s.deadLetter(e, "TTLExpiredException", "The message expired and was dead lettered.", now)
		return
	}
	s.remove(e)
}

// deadLetter moves an entry to the dead-letter queue, where it keeps its
// sequence number and the count of its deliveries, and loses its expiry.
func (s *store) deadLetter(e *entry, reason, description string, now time.Time) {
	m := e.copyMarks()
	m.deadSource, m.deadReason, m.deadDescription = s.path, reason, description
	moved := &entry{
		content: e.content, seq: e.seq, enqueuedSeq: e.enqueuedSeq, partition: e.partition,
		failed: e.failed, enqueuedAt: e.enqueuedAt, marks: &m,
	}
	s.dead.put(moved, now) // before the removal, so that the content stays held
	s.remove(e)
}

func (s *store) setAside(e *entry) {
	s.unlock(e)
	s.take(e)
	s.count(e.state, -1)
	e.state = entity.StateDeferred
	s.count(e.state, 1)
	s.b.log.change(e)
}

func (s *store) count(state entity.State, n int64) {
	switch state {
	case entity.StateActive:
		s.counts.Active += n
	case entity.StateDeferred:
		s.counts.Deferred += n
	case entity.StateScheduled:
		s.counts.Scheduled += n
	}
}

// entry finds a message by number; nil when there is none.
func (s *store) entry(seq int64) *entry {
	e, _ := s.bySeq.Get(&entry{seq: seq})
	return e
}

// close ends all receivers and waiting accepts.
func (s *store) close(err *entity.Error, now time.Time) int {
	for s.accepts.Len() > 0 { // first, or they would get the sessions that are freed
		s.accepts.Front().Value.(*accept).refuse(err)
	}
	ended := len(s.receivers)
	for r := range s.receivers {
		r.end(err, now)
	}
	return ended
}

// drop closes the store and forgets its messages.
func (s *store) drop(err *entity.Error, now time.Time) {
	s.close(err, now)
	delete(s.b.stores, s.id)
	for _, e := range s.bySeq.Items() {
		s.discard(e)
	}
}
