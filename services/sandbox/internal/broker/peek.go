package broker

import (
	"time"

	"github.com/google/uuid"
)

// Peek returns up to limit messages from sequence number from on, locked or not,
// without any effect on them. sessionID nil looks at the whole entity.
func (b *Broker) Peek(path string, from int64, limit int, sessionID *string) ([]*Delivery, error) {
	b.mu.Lock()
	now := time.Now()
	s, err := b.receivable(path, now)
	if err != nil {
		b.mu.Unlock()
		return nil, err
	}
	var found []*Delivery
	look := func(e *entry) bool {
		if len(found) >= limit {
			return false
		}
		if e.seq >= from && !e.expired(now) {
			found = append(found, e.peeked())
		}
		return true
	}
	if sessionID == nil {
		s.bySeq.Ascend(&entry{seq: from}, look)
	} else if x := s.sessions[*sessionID]; x != nil {
		for e := x.head; e != nil && look(e); e = e.next {
		}
	}
	if err := b.unlockAndCommit(); err != nil {
		return nil, err
	}
	return found, nil
}

// peeked is a delivery that says nothing of the lock.
func (e *entry) peeked() *Delivery {
	d := e.delivery()
	d.LockToken = uuid.Nil
	d.LockedUntil = time.Time{}
	return d
}
