package broker

import (
	"cmp"
	"slices"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

// Looking is for people: unlike a client's request it is refused by no limit, no
// fault and no status of the entity, and uses nothing up.

// Look returns up to limit messages from sequence number from on, with until
// when they are locked. sessionID nil looks at the whole entity.
func (b *Broker) Look(path string, from int64, limit int, sessionID *string) ([]*entity.Delivery, error) {
	b.mu.Lock()
	s, err := b.storeAt(path)
	if err != nil {
		b.mu.Unlock()
		return nil, err
	}
	found := s.look(from, limit, sessionID, (*entry).seen)
	return found, b.unlockAndCommit()
}

// look goes over the messages from a sequence number on that have not expired. A
// deferred one does so when it is asked for by its number.
func (s *store) look(from int64, limit int, sessionID *string, as func(*entry) *entity.Delivery) []*entity.Delivery {
	var found []*entity.Delivery
	now := time.Now()
	each := func(e *entry) bool {
		if len(found) >= limit {
			return false
		}
		if e.seq >= from && (e.state == entity.StateDeferred || !e.expired(now)) {
			found = append(found, as(e))
		}
		return true
	}
	if sessionID == nil {
		s.bySeq.Ascend(&entry{seq: from}, each)
	} else if x := s.sessions[*sessionID]; x != nil {
		for e := x.head; e != nil && each(e); e = e.next {
		}
	}
	return found
}

// seen is a delivery without the token, which is for whoever holds the lock.
func (e *entry) seen() *entity.Delivery {
	d := e.delivery()
	d.LockToken = [16]byte{}
	return d
}

// LookSessions returns up to limit sessions of an entity by id, those behind
// after, which nil leaves out. held leaves out sessions that nobody holds.
func (b *Broker) LookSessions(path string, after *string, limit int, held bool) ([]SessionStatus, error) {
	all, err := b.sessionsBehind(path, after, held)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(x, y SessionStatus) int { return cmp.Compare(x.ID, y.ID) })
	return all[:min(limit, len(all))], nil
}

func (b *Broker) sessionsBehind(path string, after *string, held bool) ([]SessionStatus, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, err := b.storeAt(path)
	if err != nil {
		return nil, err
	}
	if s.sessions == nil {
		return nil, errNotAllowed("'" + s.path + "' does not require sessions, so it has none.")
	}
	var all []SessionStatus
	for id, x := range s.sessions {
		if (after == nil || id > *after) && (x.holder != nil || !held) {
			all = append(all, x.status())
		}
	}
	return all, nil
}
