package broker

import "time"

// Faults, for tests and for users who want to see them. path is that of a
// queue, topic or subscription.

// Throttle answers requests and new links with server-busy for a while; 0 ends
// it. Links that are there go on.
func (b *Broker) Throttle(path string, d time.Duration) error {
	return b.withGate(path, func(g *gate) { g.throttledUntil = time.Now().Add(d) })
}

// Delay makes the operations on the entity, or all of them, take that much
// longer; 0 ends it.
func (b *Broker) Delay(path string, d time.Duration, which ...Operation) error {
	if len(which) == 0 {
		which = []Operation{Sending, Receiving, Settling}
	}
	return b.withGate(path, func(g *gate) {
		for _, o := range which {
			g.delays[o].Store(int64(d))
		}
	})
}

// Redeliver loses the next n completions: each is answered as if it had been
// carried out, and its message is delivered once more, as after a lock that
// expired. 0 ends it.
func (b *Broker) Redeliver(path string, n int) error {
	return b.withGate(path, func(g *gate) { g.redeliver = n })
}

func (b *Broker) withGate(path string, f func(*gate)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if in := b.inlets[parsePath(path).entity]; in != nil && parsePath(path).subscription == "" {
		f(&in.gate)
		return nil
	}
	s, err := b.storeAt(path)
	if err != nil {
		return err
	}
	f(s.gate)
	return nil
}

// DetachReceivers ends all receivers of a queue, subscription or dead-letter
// queue, with those that wait for a session, and says how many.
func (b *Broker) DetachReceivers(path string) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, err := b.storeAt(path)
	if err != nil {
		return 0, err
	}
	return s.close(errDetached(), time.Now()), nil
}

// LoseSessionLocks takes the named sessions, or all, from their holders, as the
// service does when a partition moves: no delivery is counted. It says how
// many it took.
func (b *Broker) LoseSessionLocks(path string, sessionIDs ...string) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, err := b.storeAt(path)
	if err != nil {
		return 0, err
	}
	var held []*session
	if len(sessionIDs) == 0 {
		for _, x := range s.sessions {
			held = append(held, x)
		}
	}
	for _, id := range sessionIDs {
		if x := s.sessions[id]; x != nil {
			held = append(held, x)
		}
	}
	lost := 0
	for _, x := range held {
		if x.holder != nil {
			x.release(errSessionLockLost(), (*store).putBack, time.Now())
			lost++
		}
	}
	return lost, nil
}
