package broker

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"changerelay/services/sandbox/internal/servicebus/entity"
	"changerelay/services/sandbox/internal/servicebus/record"
)

// content is a message as it is kept once per queue or topic, however many
// subscriptions hold it.
type content struct {
	msg     *entity.Message
	quota   *quota
	holders int
	number  uint64 // in the journal; 0: not written
}

func (c *content) size() int64 { return int64(len(c.msg.Payload)) }

func (c *content) hold() {
	if c.holders == 0 {
		c.quota.used += c.size()
	}
	c.holders++
}

func (c *content) drop() {
	c.holders--
	if c.holders == 0 {
		c.quota.used -= c.size()
	}
}

// quota is the room of a queue or topic.
type quota struct{ used, max int64 }

// entry is a message's place in one store. It is available (index >= 0), or
// locked (lock set), or set aside (deferred or scheduled, and not locked).
type entry struct {
	*content
	store       *store
	seq         int64
	enqueuedSeq int64
	order       uint64 // of arrival in the store, over all partitions
	partition   int16
	state       entity.State
	failed      uint32 // deliveries that failed
	enqueuedAt  time.Time
	expiresAt   time.Time // zero: never

	index      int // in its heap of available entries; -1: not in it
	session    *session
	prev, next *entry // neighbours in the session, by arrival
	lock       *lock
	alarm      *lifetime // of expiresAt or of the scheduled time
	marks      *marks
}

// marks are what few messages have.
type marks struct {
	deadSource      string
	deadReason      string
	deadDescription string
	modified        map[string]any
}

func (e *entry) expired(now time.Time) bool {
	return !e.expiresAt.IsZero() && !now.Before(e.expiresAt)
}

// size is what the outcomes' part of the marks takes in the journal.
func (m *marks) size() int64 {
	if m == nil {
		return 0
	}
	var w record.Encoder
	if len(m.modified) > 0 {
		w.Properties(m.modified)
	}
	return int64(len(m.deadReason) + len(m.deadDescription) + len(w.Buf))
}

// size is what the message takes here. It shadows that of the content, which
// others may hold as well.
func (e *entry) size() int64 { return e.content.size() + e.marks.size() }

// marksRoom is what outcomes may add to a message that is as large as its
// entity takes any: the service gives properties 64 KiB.
const marksRoom = 64 << 10

// modify lays an outcome's properties over the ones that earlier outcomes have
// set, unless the message would grow too large, with texts bytes that are added
// beside them. The old marks stay as they are: they may have been handed out
// with a delivery.
func (e *entry) modify(properties map[string]any, texts int) error {
	if len(properties) == 0 && texts == 0 {
		return nil
	}
	m := e.copyMarks()
	if len(properties) > 0 {
		modified := make(map[string]any, len(m.modified)+len(properties))
		maps.Copy(modified, m.modified)
		maps.Copy(modified, properties)
		m.modified = modified
	}
	grown := m.size() - e.marks.size()
	limit := max(e.store.inlet.largest(), e.content.size()) + marksRoom
	if size := e.size() + grown + int64(texts); size > limit && grown+int64(texts) > 0 {
		return errMessageSize(size, limit)
	}
	if len(properties) == 0 {
		return nil
	}
	if q := e.quota; grown > 0 && q.used+grown > q.max {
		return errQuota(e.store.inlet.kind(), e.store.inlet.name, q.used, q.max)
	}
	e.mark(&m)
	return nil
}

// mark gives the entry other marks. They are never changed.
func (e *entry) mark(m *marks) {
	e.quota.used += m.size() - e.marks.size()
	e.marks = m
}

func (e *entry) copyMarks() marks {
	if e.marks == nil {
		return marks{}
	}
	return *e.marks
}

// delivery is the entry as it is now.
func (e *entry) delivery() *entity.Delivery {
	d := &entity.Delivery{
		Message:                e.msg,
		SequenceNumber:         e.seq,
		EnqueuedSequenceNumber: e.enqueuedSeq,
		Partition:              e.partition,
		EnqueuedTime:           e.enqueuedAt,
		ExpiresAt:              e.expiresAt,
		State:                  e.state,
		DeliveryCount:          e.failed,
		Size:                   e.size(),
	}
	if e.lock != nil {
		d.LockToken = e.lock.token
		d.LockedUntil = e.lock.until()
	}
	if m := e.marks; m != nil {
		d.DeadLetterSource = m.deadSource
		d.DeadLetterReason = m.deadReason
		d.DeadLetterDescription = m.deadDescription
		d.Modified = m.modified
	}
	return d
}

// lock is a receiver's hold of an entry. On a session entity it lasts as long
// as the session's.
type lock struct {
	entry  *entry
	holder *Receiver // nil when taken over $management without one
	token  uuid.UUID
	alarm  alarm // off on a session entity
}

func newLock(e *entry, r *Receiver) *lock {
	l := &lock{entry: e, holder: r, token: newToken()}
	l.alarm = newAlarm(l)
	return l
}

// newToken is a random UUID. It need not be unguessable.
func newToken() uuid.UUID {
	var u uuid.UUID
	binary.LittleEndian.PutUint64(u[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(u[8:], rand.Uint64())
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}

func (l *lock) until() time.Time {
	if s := l.entry.session; s != nil {
		return s.lockedUntil
	}
	return l.alarm.at
}

// ring ends a lock that nobody settled or renewed in time.
func (l *lock) ring(_ *Broker, now time.Time) {
	e := l.entry
	e.store.totals.expired++
	e.store.fail(e, now)
}

// lifetime is the alarm of a message's expiry or of its scheduled time.
type lifetime struct {
	alarm
	entry *entry
}

func (t *lifetime) ring(b *Broker, now time.Time) {
	e := t.entry
	if e.state == entity.StateScheduled {
		b.due(e, now)
		return
	}
	if e.lock == nil && e.state != entity.StateDeferred {
		e.store.expire(e, now)
	}
}
