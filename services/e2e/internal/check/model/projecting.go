package model

import "fmt"

// The projecting: one session, whose messages are three changes of one
// aggregate; two projectors, of which one holds the session at a time. The
// second change deletes the read document.

const (
	projectors = 2
	versions   = 3
	deleted    = 2 // the version that deletes
	arrivals   = 5 // messages in the session: each change once, and two repeats
)

// projectingGuards are what keep the read model from going back.
type projectingGuards struct {
	sequence   bool // a write matches a lower sequence only
	tombstone  bool // a deleted document leaves its sequence behind
	writeFirst bool // a message is completed after its write is acknowledged
	serial     bool // nothing more is received before that
}

func allProjectingGuards() projectingGuards { return projectingGuards{true, true, true, true} }

type progress uint8

const (
	received progress = iota + 1
	writing
	written
)

// hand is a message that a projector works on. The zero value is none.
type hand struct {
	at       int8 // in the session
	version  int8
	progress progress
}

// projector is one process. Without the guard serial it may have two messages
// in hand.
type projector struct{ hands [2]hand }

// projecting is a state.
type projecting struct {
	arrived    [arrivals]int8 // versions
	length     int8
	completed  uint8 // by place in the session
	first      int8  // the highest version that has arrived
	holder     int8  // of the session; 0 is nobody
	projectors [projectors]projector
	late       uint8 // by version: writes that nobody waits for any more

	sequence int8 // of the read document
	applied  [versions + 1]int8
}

func projectingMachine(g projectingGuards) machine[projecting] {
	return machine[projecting]{
		next: func(s projecting, emit func(string, projecting, string)) {
			s.arrivalSteps(func(step string, to projecting) { emit(step, to, "") })
			for v := int8(1); v <= versions; v++ {
				if s.late&(1<<v) != 0 {
					to := s
					broken := to.write(g, v)
					to.late &^= 1 << v
					emit(fmt.Sprintf("a late write of %d arrives", v), to, broken)
				}
			}
			for i := range s.projectors {
				s.sessionSteps(g, i, func(step string, to projecting) { emit(step, to, "") })
				for h := range s.projectors[i].hands {
					s.handSteps(g, i, h, emit)
				}
			}
		},
		broken: func(s projecting) string {
			for v := int8(1); v <= versions; v++ {
				if s.applied[v] > 1 {
					return "each change is applied once"
				}
			}
			for at := range s.length {
				if s.isCompleted(at) && s.applied[s.arrived[at]] == 0 {
					return "what is completed is applied"
				}
			}
			return ""
		},
		done: func(s projecting) bool {
			return s.first == versions && s.sequence == versions
		},
	}
}

func (s projecting) isCompleted(at int8) bool { return s.completed&(1<<at) != 0 }

// arrivalSteps emits what publishing allows: the next change for the first
// time, or a repeat of one that is there.
func (s projecting) arrivalSteps(emit func(string, projecting)) {
	repeats := s.length - s.first
	for v := int8(1); v <= min(s.first+1, versions); v++ {
		if v <= s.first && repeats >= arrivals-versions {
			continue
		}
		to := s
		to.arrived[to.length] = v
		to.length++
		to.first = max(to.first, v)
		emit(fmt.Sprintf("%d arrives", v), to)
	}
}

func (s projecting) sessionSteps(g projectingGuards, i int, emit func(string, projecting)) {
	name := fmt.Sprintf("projector %d", i+1)
	me := int8(i) + 1
	if s.holder == 0 {
		to := s
		to.holder = me
		to.drop(i)
		emit(name+" accepts the session", to)
	}
	if s.holder == me {
		to := s
		to.holder = 0
		emit(name+" loses the session without knowing", to)
		to.drop(i)
		emit(name+" dies", to)
		if at, free := s.nextFor(g, i); free >= 0 {
			to := s
			to.projectors[i].hands[free] = hand{at: at, version: s.arrived[at], progress: received}
			emit(fmt.Sprintf("%s receives %d", name, s.arrived[at]), to)
		}
	}
}

// drop forgets what a projector has in hand; its writes may still arrive.
func (s *projecting) drop(i int) {
	for _, h := range s.projectors[i].hands {
		if h.progress == writing {
			s.late |= 1 << h.version
		}
	}
	s.projectors[i] = projector{}
}

// nextFor is the place of the message that the holder gets next, and the free
// hand for it, or -1.
func (s projecting) nextFor(g projectingGuards, i int) (at int8, free int) {
	free = -1
	taken := uint8(0)
	for k, h := range s.projectors[i].hands {
		if h.progress == 0 {
			free = k
		} else {
			taken |= 1 << h.at
		}
	}
	if g.serial && taken != 0 {
		return 0, -1
	}
	for at := range s.length {
		if !s.isCompleted(at) && taken&(1<<at) == 0 {
			return at, free
		}
	}
	return 0, -1
}

func (s projecting) handSteps(g projectingGuards, i, k int, emit func(string, projecting, string)) {
	h := s.projectors[i].hands[k]
	name := fmt.Sprintf("projector %d", i+1)
	to := s
	mine := &to.projectors[i].hands[k]
	switch h.progress {
	case received:
		mine.progress = writing
		emit(fmt.Sprintf("%s sends its write of %d", name, h.version), to, "")
		if !g.writeFirst {
			s.complete(i, k, name, emit)
		}
	case writing:
		mine.progress = written
		broken := to.write(g, h.version)
		emit(fmt.Sprintf("the write of %d by %s arrives", h.version, name), to, broken)
	case written:
		s.complete(i, k, name, emit)
	}
}

// complete emits a settlement: carried out for the holder, refused for others.
func (s projecting) complete(i, k int, name string, emit func(string, projecting, string)) {
	h := s.projectors[i].hands[k]
	if s.holder == int8(i)+1 {
		s.completed |= 1 << h.at
	}
	s.projectors[i].hands[k] = hand{}
	emit(fmt.Sprintf("%s completes %d", name, h.version), s, "")
}

// write is the read model's side, one atomic step, and the promise it breaks.
func (s *projecting) write(g projectingGuards, v int8) string {
	if g.sequence && v <= s.sequence {
		return ""
	}
	broken := ""
	switch {
	case v < s.sequence:
		broken = "the read model never goes back"
	case v > 1 && s.applied[v-1] == 0:
		broken = "changes are applied in order"
	}
	s.applied[v] = min(s.applied[v]+1, 2)
	s.sequence = v
	if v == deleted && !g.tombstone {
		s.sequence = 0
	}
	return broken
}
