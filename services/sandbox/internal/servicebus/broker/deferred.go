package broker

import (
	"math"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// ReceiveDeferred takes deferred messages by number: all or an error. Those that
// have outlived their time end with it, and are not found. On a session entity
// the session must be locked. Several that take more than most bytes together
// are refused; one is given whatever its size.
func (b *Broker) ReceiveDeferred(path string, seqs []int64, mode ReceiveMode, sessionID *string, most int64) ([]*entity.Delivery, error) {
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
	by := &Receiver{b: b, store: s, mode: mode}
	if s.sessions != nil {
		if sessionID == nil {
			b.mu.Unlock()
			return nil, errSessionRequired()
		}
		x, err := b.lockedSession(path, *sessionID, now)
		if err != nil {
			b.mu.Unlock()
			return nil, err
		}
		by = &Receiver{b: b, store: s, mode: mode, session: x}
	}
	return by.deferred(seqs, most, now)
}

// ReceiveDeferred takes deferred messages of the receiver's entity or session
// by number: all or an error.
func (r *Receiver) ReceiveDeferred(seqs []int64) ([]*entity.Delivery, error) {
	r.b.mu.Lock()
	now := time.Now()
	r.checkLock(now)
	if r.err != nil {
		r.b.mu.Unlock()
		return nil, r.err
	}
	return r.deferred(seqs, math.MaxInt64, now)
}

// deferred is called with the lock held and returns without it.
func (r *Receiver) deferred(seqs []int64, most int64, now time.Time) ([]*entity.Delivery, error) {
	s := r.store
	entries := make([]*entry, 0, len(seqs))
	asked := make(map[int64]bool, len(seqs))
	size := int64(0)
	for _, seq := range seqs {
		e := s.entry(seq)
		if e == nil || e.state != entity.StateDeferred || e.lock != nil || e.session != r.session || asked[seq] {
			r.b.mu.Unlock()
			return nil, errMessageNotFound(seq)
		}
		asked[seq] = true
		entries = append(entries, e)
		size += e.size()
	}
	if seq, expired := s.expireAmong(entries, now); expired {
		if err := r.b.unlockAndCommit(); err != nil {
			return nil, err
		}
		return nil, errMessageNotFound(seq)
	}
	if len(entries) > 1 && size > most {
		r.b.mu.Unlock()
		return nil, errAnswerSize(size, most)
	}
	deliveries := make([]*entity.Delivery, len(entries))
	for i, e := range entries {
		holder := r
		if e.session != nil {
			holder = e.session.holder // whose link settles it
		}
		deliveries[i] = holder.deliver(e, r.mode, now)
	}
	if err := r.b.unlockAndCommit(); err != nil {
		return nil, err
	}
	return deliveries, nil
}

// expireAmong ends the entries that have outlived their time, and names one.
func (s *store) expireAmong(entries []*entry, now time.Time) (seq int64, expired bool) {
	for _, e := range entries {
		if e.expired(now) {
			seq, expired = e.seq, true
			s.expire(e, now)
			s.b.log.divide(recordSize)
		}
	}
	return seq, expired
}
