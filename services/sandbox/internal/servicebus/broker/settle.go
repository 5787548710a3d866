package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// SettleByToken settles a locked message over $management.
func (b *Broker) SettleByToken(path string, token uuid.UUID, o entity.Outcome) error {
	s, err := b.managed(path)
	if err != nil {
		return err
	}
	return b.settle(s, func(now time.Time) error {
		e := s.locked[token]
		if e == nil {
			return errMessageLockLost()
		}
		return s.settle(e, o, now)
	})
}

// managed finds the store of a management request.
func (b *Broker) managed(path string) (*store, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.receivable(path, time.Now())
}

// settle runs a settlement under the lock, delayed by the entity's gate.
func (b *Broker) settle(s *store, carryOut func(now time.Time) error) error {
	b.pause(context.Background(), s.gate, Settling)
	b.mu.Lock()
	now := time.Now()
	if b.purse.Costs.Settle > 0 {
		if err := b.purse.admit(b.cfg.Namespace, now); err != nil {
			b.mu.Unlock()
			return err
		}
		b.purse.pay(b.purse.Costs.Settle)
	}
	err := carryOut(now)
	if commitErr := b.unlockAndCommit(); err == nil {
		err = commitErr
	}
	return err
}

// settle carries out an outcome for a locked entry.
func (s *store) settle(e *entry, o entity.Outcome, now time.Time) error {
	if s.endOverdue(e, now) {
		return errMessageLockLost()
	}
	switch o := o.(type) {
	case entity.Complete:
		if s.gate.redeliver > 0 {
			s.gate.redeliver--
			s.fail(e, now)
			return nil
		}
		s.totals.completed++
		s.remove(e)
	case entity.Abandon:
		if err := e.modify(o.Properties, 0); err != nil {
			return err
		}
		if s.isDeadLetter() && len(o.Properties) > 0 {
			s.b.log.change(e) // which a failed delivery does elsewhere
		}
		s.fail(e, now)
	case entity.Release:
		s.putBack(e, now)
	case entity.Defer:
		if err := e.modify(o.Properties, 0); err != nil {
			return err
		}
		s.setAside(e)
	case entity.DeadLetter:
		if s.isDeadLetter() {
			return errNotAllowed("A message in a dead-letter queue cannot be dead-lettered.")
		}
		if err := e.modify(o.Properties, len(o.Reason)+len(o.Description)); err != nil {
			return err
		}
		s.deadLetter(e, o.Reason, o.Description, now)
	default:
		return errNotAllowed(fmt.Sprintf("The outcome %T is not known.", o))
	}
	return nil
}

// endOverdue ends a lock that is over before its alarm has rung.
func (s *store) endOverdue(e *entry, now time.Time) bool {
	if now.Before(e.lock.until()) {
		return false
	}
	if e.session != nil {
		e.session.expire(now)
	} else {
		e.lock.ring(s.b, now)
	}
	return true
}

// RenewMessageLocks extends each lock by the entity's lock duration: all or
// none.
func (b *Broker) RenewMessageLocks(path string, tokens []uuid.UUID) ([]time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	s, err := b.receivable(path, now)
	if err != nil {
		return nil, err
	}
	if s.sessions != nil {
		return nil, errNotAllowed("A message lock cannot be renewed on a session entity: the session's lock holds its messages.")
	}
	for _, token := range tokens {
		if e := s.locked[token]; e == nil || s.endOverdue(e, now) {
			return nil, errMessageLockLost()
		}
	}
	until := make([]time.Time, len(tokens))
	for i, token := range tokens {
		until[i] = now.Add(s.terms.lockDuration)
		b.set(&s.locked[token].lock.alarm, until[i])
	}
	return until, nil
}
