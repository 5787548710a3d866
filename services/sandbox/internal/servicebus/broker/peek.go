package broker

import (
	"time"

	"github.com/google/uuid"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// Peek returns up to limit messages from sequence number from on, locked or not,
// without any effect on them. sessionID nil looks at the whole entity.
func (b *Broker) Peek(path string, from int64, limit int, sessionID *string) ([]*entity.Delivery, error) {
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
	found := s.look(from, limit, sessionID, (*entry).peeked)
	b.purse.pay(int64(len(found)) * b.purse.Costs.Peek)
	if err := b.unlockAndCommit(); err != nil {
		return nil, err
	}
	return found, nil
}

// peeked is a delivery that says nothing of the lock.
func (e *entry) peeked() *entity.Delivery {
	d := e.delivery()
	d.LockToken = uuid.Nil
	d.LockedUntil = time.Time{}
	return d
}
