package model

import "fmt"

// The resending: one aggregate, whose first event was sent long ago, and two more come
// while all of it is sent again for a receiver that begins anew. Two publishers, of
// which anybody may claim a term at any time. A chunk has room for one event or two.
//
// The receiver takes the next version, whether it is live or resent, once the first
// was resent; it passes by what is ahead, as that comes again.

const (
	resenders  = 2
	events     = 3
	chunkSize  = 2
	mostTerms  = 2
	laneLength = 12
)

// resendingGuards are what lets whoever begins anew miss nothing.
type resendingGuards struct {
	ids    bool // a resent message has an id of its own
	keep   bool // what is handed on while a chunk is read goes behind it
	first  bool // and is kept from before the snapshot's time is asked for
	raise  bool // a snapshot is not older than what was handed on
	open   bool // of an aggregate that goes on in the next chunk nothing is added
	finish bool // a chunk is saved when all of it is accepted
	term   bool // progress is saved under the term that has taken it
	fence  bool // a term takes it from earlier ones before it hands anything on
	behind bool // a chunk waits until all that its snapshot shows is handed on
}

func allResendingGuards() resendingGuards {
	return resendingGuards{true, true, true, true, true, true, true, true, true}
}

type phase uint8

const (
	fencing phase = iota // as a term begins
	idle
	keeping
	reading // the snapshot's time is known
	sending
	ending
	stopped
)

// resender is one publisher. The zero value has no term.
type resender struct {
	term   int8
	handed int8 // the last version that went from the stream to the lane
	lane   [laneLength]int8
	length int8 // of the lane; resent versions are below 0 in it

	phase phase
	low   int8  // what a snapshot has at least; once it is read, what it has
	from  int8  // behind which the chunk begins
	to    int8  // its last version
	more  bool  // whether it is full
	kept  uint8 // by version: handed on since
}

// resending is a state.
type resending struct {
	committed  int8
	highest    int8 // term given out
	checkpoint int8
	publishers [resenders]resender

	place int8 // what is saved of the resend
	taken int8 // the term that may save
	done  bool

	ids     uint8 // by version: message ids of resent messages that the topic has
	reached int8  // of the receiver
	came    int8  // up to which version the topic has had live messages
}

const (
	resentInOrder    = "what is resent comes in order"
	missesNothing    = "whoever begins anew misses nothing"
	overtakesNothing = "nothing is resent before it came live"
	progressForward  = "the progress of a resend never goes back"
)

func resendingMachine(g resendingGuards) machine[resending] {
	return machine[resending]{
		initial: resending{committed: 1, checkpoint: 1, came: 1},
		next: func(s resending, emit func(string, resending, string)) {
			if s.committed < events {
				to := s
				to.committed++
				emit(fmt.Sprintf("%d is committed", to.committed), to, "")
			}
			for i := range s.publishers {
				s.termSteps(i, func(step string, to resending) { emit(step, to, "") })
				if s.publishers[i].term > 0 {
					if !g.fence || s.publishers[i].phase != fencing {
						s.streamSteps(g, i, emit)
					}
					s.resendSteps(g, i, emit)
				}
			}
		},
		broken: func(s resending) string {
			for _, p := range s.publishers {
				if s.done && s.committed == events && p.term == s.highest && p.handed == events && p.length == 0 && s.reached < events {
					return missesNothing
				}
			}
			return ""
		},
		done: func(s resending) bool { return s.done && s.reached == events },
	}
}

func (s resending) termSteps(i int, emit func(string, resending)) {
	if s.highest == mostTerms {
		return
	}
	name := fmt.Sprintf("publisher %d", i+1)
	to := s
	to.highest++
	to.publishers[i] = resender{term: to.highest, handed: s.checkpoint}
	emit(name+" claims a term", to)
	if s.publishers[i].term > 0 {
		to := s
		to.publishers[i] = resender{}
		emit(name+" dies", to)
	}
}

// streamSteps are those of the relay: the stream, the lane, the checkpoint.
func (s resending) streamSteps(g resendingGuards, i int, emit func(string, resending, string)) {
	name := fmt.Sprintf("publisher %d", i+1)
	p := s.publishers[i]
	if p.handed < s.committed && p.length < laneLength {
		to := s
		mine := &to.publishers[i]
		mine.handed++
		mine.push(mine.handed)
		if p.phase == reading || p.phase == keeping && g.first {
			mine.kept |= 1 << mine.handed
		}
		emit(fmt.Sprintf("%s hands on %d", name, mine.handed), to, "")
	}
	if p.length > 0 {
		to := s
		broken := to.accept(g, p.lane[0])
		emit(fmt.Sprintf("%s sends %d, and hears nothing", name, p.lane[0]), to, broken)
		to.publishers[i].shift()
		emit(fmt.Sprintf("%s sends %d", name, p.lane[0]), to, broken)
	}
	if p.length == 0 && p.term == s.highest && s.checkpoint < p.handed {
		to := s
		to.checkpoint = p.handed
		emit(name+" saves the checkpoint", to, "")
	}
}

// resendSteps are those of the resend beside it.
func (s resending) resendSteps(g resendingGuards, i int, emit func(string, resending, string)) {
	name := fmt.Sprintf("publisher %d", i+1)
	p := s.publishers[i]
	to := s
	mine := &to.publishers[i]
	switch p.phase {
	case fencing:
		mine.phase = idle
		if g.fence {
			to.taken = max(s.taken, p.term)
		}
		emit(name+" takes what is under way from earlier terms", to, "")
	case idle:
		if s.done || s.taken > p.term {
			return
		}
		to.taken = p.term
		mine.phase, mine.from, mine.kept = keeping, s.place, 0
		if g.raise {
			mine.low = p.handed
		}
		emit(name+" takes the resend", to, "")
	case keeping:
		if !g.first && g.raise {
			mine.low = p.handed
		}
		mine.phase = reading
		for seen := p.low; seen <= s.committed; seen++ {
			for size := int8(1); size <= chunkSize; size++ {
				mine.to = max(min(seen, p.from+size), p.from)
				mine.more = seen-p.from >= size
				mine.low = seen
				emit(fmt.Sprintf("%s reads up to %d of %d", name, mine.to, seen), to, "")
			}
		}
	case reading:
		s.insertChunk(g, i, name, emit)
	case sending:
		if g.finish && p.resent() {
			return
		}
		mine.phase = idle
		if !p.more {
			mine.phase = ending
		}
		broken := to.save(g, i, p.to, false)
		emit(fmt.Sprintf("%s saves that %d is resent", name, p.to), to, broken)
	case ending:
		mine.phase = idle
		broken := to.save(g, i, p.to, true)
		emit(name+" saves that the resend is done", to, broken)
	}
}

// insertChunk puts what was read in the lane, and behind it what was kept.
func (s resending) insertChunk(g resendingGuards, i int, name string, emit func(string, resending, string)) {
	mine := &s.publishers[i]
	if g.behind && mine.handed < mine.low {
		return // the stream is behind
	}
	if mine.to == mine.from {
		mine.phase = ending
		emit(name+" finds no more", s, "")
		return
	}
	if mine.length+events+chunkSize > laneLength {
		return // the window is full
	}
	for v := mine.from + 1; v <= mine.to; v++ {
		mine.push(-v)
	}
	for v := int8(1); v <= events; v++ {
		if g.keep && mine.kept&(1<<v) != 0 && (!mine.more || !g.open) {
			mine.push(-v)
		}
	}
	mine.kept, mine.phase = 0, sending
	emit(fmt.Sprintf("%s puts the chunk up to %d in the lane", name, mine.to), s, "")
}

func (p *resender) push(v int8) {
	p.lane[p.length] = v
	p.length++
}

func (p *resender) shift() {
	copy(p.lane[:], p.lane[1:])
	p.lane[laneLength-1] = 0
	p.length--
}

// resent reports whether something resent is in the lane.
func (p *resender) resent() bool {
	for _, v := range p.lane[:p.length] {
		if v < 0 {
			return true
		}
	}
	return false
}

// save keeps progress in a publisher's term, and returns the promise that it breaks.
func (s *resending) save(g resendingGuards, i int, place int8, done bool) string {
	if g.term && s.taken != s.publishers[i].term {
		s.publishers[i].phase = stopped
		return ""
	}
	broken := ""
	if place < s.place || s.done && !done {
		broken = progressForward
	}
	s.place, s.done = place, done
	return broken
}

// accept is the topic's side, and the receiver's: the topic drops what it has by id.
func (s *resending) accept(g resendingGuards, message int8) string {
	v, resent := message, message < 0
	if resent {
		v = -message
		if v > s.came {
			return overtakesNothing
		}
		if s.ids&(1<<v) != 0 || !g.ids {
			return "" // under its own id the topic has had it, live or not
		}
		s.ids |= 1 << v
	} else {
		s.came = max(s.came, v)
	}
	switch {
	case v == s.reached+1 && (resent || s.reached > 0):
		s.reached = v
	case v > s.reached+1 && resent:
		return resentInOrder
	}
	return ""
}
