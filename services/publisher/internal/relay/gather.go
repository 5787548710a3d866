package relay

import (
	"context"
	"sync/atomic"
)

// unfilled is how many sends may be under way for one that is not full to join
// them: enough that a lone change does not wait, few enough that under load
// sends are full. It is Nagle's rule (RFC 896) with more than one packet.
const unfilled = 4

// turns lets one sender at a time gather lanes for a send that mixes aggregates.
// Left alone, many senders would share out the ready lanes in small sends.
type turns struct {
	gathering chan struct{} // holds a token while a sender gathers
	underWay  atomic.Int32  // sends
	ended     chan struct{} // holds a token when a send has ended; nil unless mixed
}

func newTurns(mixed bool) *turns {
	t := &turns{gathering: make(chan struct{}, 1)}
	if mixed {
		t.ended = make(chan struct{}, 1)
	}
	return t
}

func (t *turns) end() {
	t.underWay.Add(-1)
	select {
	case t.ended <- struct{}{}:
	default:
	}
}

// pick waits for a lane that is ready and takes hold of it; with Mixed, of as
// many as fill a send, or of those there are while few sends are under way. It
// returns false when there are no more. After true, turns.end must be called
// when the send has ended.
func (s *laneSender) pick(ctx context.Context) (bool, error) {
	if s.config.Mixed {
		select {
		case s.turns.gathering <- struct{}{}:
			defer func() { <-s.turns.gathering }()
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	room := s.config.BatchBytes
	s.items = s.items[:0]
	for {
		select {
		case ready, open := <-s.lanes.ready:
			if !open {
				return false, nil
			}
			s.join(ready, &room)
			s.holdMore(&room)
		case alone := <-s.singles():
			s.hold(alone, &room)
			s.turns.underWay.Add(1)
			return true, nil
		case <-s.turns.ended:
			room = s.regather()
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
		if s.enough(room) {
			s.turns.underWay.Add(1)
			return true, nil
		}
	}
}

// singles gives lanes that are to be sent apart, while nothing is gathered.
func (s *laneSender) singles() <-chan *lane {
	if len(s.items) > 0 {
		return nil
	}
	return s.lanes.single
}

// enough reports whether what is gathered is to be sent.
func (s *laneSender) enough(room int) bool {
	switch {
	case len(s.items) == 0:
		return false
	case !s.config.Mixed, s.alone(), len(s.items) >= s.config.BatchSize, room <= 0:
		return true
	default:
		return s.turns.underWay.Load() < unfilled
	}
}

// regather takes the fronts of the held lanes again, which may have grown, and
// of more that are ready. It returns the room that is left.
func (s *laneSender) regather() int {
	s.items = s.items[:0]
	room := s.config.BatchBytes
	for i := range s.held {
		s.take(&s.held[i], &room)
	}
	s.holdMore(&room)
	return room
}

// holdMore takes hold of lanes that are ready, as far as there is room, where
// messages may be mixed.
func (s *laneSender) holdMore(room *int) {
	for s.config.Mixed && !s.alone() && len(s.items) < s.config.BatchSize && *room > 0 {
		select {
		case ready, open := <-s.lanes.ready:
			if !open {
				return
			}
			s.join(ready, room)
		default:
			return
		}
	}
}

// trim leaves the first n items to be sent, and gives back the lanes of the others.
func (s *laneSender) trim(n int) {
	if n >= len(s.items) {
		return
	}
	clear(s.items[n:])
	s.items = s.items[:n]
	for i := range s.held {
		p := &s.held[i]
		p.count = min(p.count, n)
		n -= p.count
		if n == 0 {
			s.giveBackFrom(i + 1)
			return
		}
	}
}

// join takes hold of a lane that is ready, or leaves it to the next sender where
// it has to be sent apart from what is held.
func (s *laneSender) join(ready *lane, room *int) {
	if len(s.held) > 0 && ready.unmixable() {
		s.lanes.single <- ready
		return
	}
	s.hold(ready, room)
}

func (s *laneSender) hold(ready *lane, room *int) {
	s.held = append(s.held, part{lane: ready})
	s.take(&s.held[len(s.held)-1], room)
}

// take adds the front of a held lane, as far as there is room, which it lessens.
func (s *laneSender) take(p *part, room *int) {
	before := len(s.items)
	s.items = s.lanes.front(p.lane, s.config.BatchSize, *room, s.items)
	for _, it := range s.items[before:] {
		*room -= len(it.message.Body)
	}
	p.count = len(s.items) - before
}
