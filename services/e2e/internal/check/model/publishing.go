package model

import (
	"fmt"
	"slices"
)

// The publishing: three publishers, any of which may claim at any time, and
// three changes: a1, b1 and a2, of the aggregates a and b.

const (
	publishers = 3
	changes    = 3
	claims     = 3 // claims there are
	saves      = 2 // saves of a term
)

var (
	changeNames = [changes]string{"a1", "b1", "a2"}
	aggregate   = [changes]int{0, 1, 0}
)

// publishingGuards are what keep the topic in order and the checkpoint true.
type publishingGuards struct {
	lane           bool // an aggregate has one send in flight
	front          bool // what was not accepted is sent again before what follows it
	watermark      bool // a save names the end of the finished prefix
	idle           bool // the token of an empty read is saved only when nothing is unfinished
	claimIsTheRead bool // the token comes from the claim's own answer
	term           bool // the store refuses a save of an earlier term
	number         bool // and one with a lower number than the last of its term
}

func allPublishingGuards() publishingGuards {
	return publishingGuards{true, true, true, true, true, true, true}
}

// set is a set of changes.
type set uint8

func (s set) has(c int) bool  { return s&(1<<c) != 0 }
func (s set) with(c int) set  { return s | 1<<c }
func (s set) minus(c int) set { return s &^ (1 << c) }
func (s set) prefix() (n int8) { // how many from the first one on
	for s.has(int(n)) {
		n++
	}
	return n
}

const everything set = 1<<changes - 1

// save is a save of the checkpoint, on its way. The zero value is none.
type save struct{ term, number, position int8 }

// publisher is one process. term 0 does not lead.
type publisher struct {
	term     int8
	read     bool // with claimIsTheRead cut: has read the token and not claimed yet
	start    int8
	finished set // everything before start included
	inFlight set
	saved    int8 // the last position that was acknowledged
	number   int8
	save     save // waiting for its answer
	late     save // not waited for any more
}

// publishing is a state.
type publishing struct {
	term, number, position int8 // the checkpoint
	arrived                set  // what the topic has
	underWay               set  // sent by somebody who does not wait for it any more
	publishers             [publishers]publisher
}

func publishingMachine(g publishingGuards) machine[publishing] {
	return machine[publishing]{
		next: func(s publishing, report func(string, publishing, string)) {
			emit := func(step string, to publishing) {
				broken := to.compare(s)
				to.forget(g)
				report(step, to.sorted(), broken)
			}
			for c := range changes {
				if s.underWay.has(c) {
					to := s
					to.arrive(c)
					emit(changeNames[c]+" arrives late", to)
				}
			}
			for i := range s.publishers {
				s.claimSteps(g, i, emit)
				s.sendSteps(g, i, emit)
				s.saveSteps(g, i, emit)
			}
		},
		broken: func(s publishing) string {
			if s.arrived.prefix() < s.position {
				return "the checkpoint passes only what the topic has"
			}
			return ""
		},
		done: func(s publishing) bool {
			spent := func(p publisher) bool { return p.term == s.term && p.number == saves }
			return s.position == changes || s.term == claims || slices.ContainsFunc(s.publishers[:], spent)
		},
	}
}

// compare is the promise that the step from an earlier state breaks.
func (s publishing) compare(before publishing) string {
	for c := range changes {
		for earlier := range c {
			if aggregate[earlier] == aggregate[c] && !before.arrived.has(c) && s.arrived.has(c) && !s.arrived.has(earlier) {
				return "an aggregate's changes first arrive in order"
			}
		}
	}
	if s.position < before.position {
		return "the checkpoint never goes back"
	}
	return ""
}

// forget drops what can make no difference any more: copies under way of what
// has arrived, and late saves that would be refused at any time.
func (s *publishing) forget(g publishingGuards) {
	s.underWay &^= s.arrived
	for i := range s.publishers {
		late := &s.publishers[i].late
		if g.term && (late.term < s.term || g.number && late.number <= s.number) {
			*late = save{}
		}
	}
}

// sorted is the same state with the publishers in one order: which of them is
// which makes no difference.
func (s publishing) sorted() publishing {
	slices.SortFunc(s.publishers[:], func(a, b publisher) int { return slices.Compare(a.key(), b.key()) })
	return s
}

func (p publisher) key() []int8 {
	read := int8(0)
	if p.read {
		read = 1
	}
	return []int8{
		p.term, read, p.start, int8(p.finished), int8(p.inFlight), p.saved, p.number,
		p.save.term, p.save.number, p.save.position, p.late.term, p.late.number, p.late.position,
	}
}

func (s *publishing) arrive(c int) { s.arrived = s.arrived.with(c) }

// stop ends a publisher's term: what it has under way may still arrive.
func (s *publishing) stop(p *publisher) {
	s.underWay |= p.inFlight
	late := p.late
	if p.save != (save{}) {
		late = p.save
	}
	*p = publisher{late: late}
}

// change gives the state after a step of publisher i.
func (s publishing) change(i int, step func(*publishing, *publisher)) publishing {
	step(&s, &s.publishers[i])
	return s
}

func (s publishing) claimSteps(g publishingGuards, i int, emit func(string, publishing)) {
	p := s.publishers[i]
	begin := func(start int8) func(*publishing, *publisher) {
		return func(s *publishing, p *publisher) {
			s.stop(p)
			s.term++
			s.number = 0
			p.term, p.start, p.saved = s.term, start, start
			p.finished = 1<<start - 1
		}
	}
	if s.term < claims {
		switch {
		case g.claimIsTheRead:
			emit("somebody claims the checkpoint", s.change(i, begin(s.position)))
		case p.read:
			emit("somebody claims the checkpoint, having read it", s.change(i, begin(p.start)))
		case p.term == 0:
			emit("somebody reads the checkpoint", s.change(i, func(_ *publishing, p *publisher) { p.read, p.start = true, s.position }))
		}
	}
	if p.term > 0 {
		emit("somebody dies", s.change(i, (*publishing).stop))
	}
}

func (s publishing) sendSteps(g publishingGuards, i int, emit func(string, publishing)) {
	p := s.publishers[i]
	for c := range changes {
		name := changeNames[c]
		if p.inFlight.has(c) {
			emit(name+" arrives and is acknowledged", s.change(i, func(s *publishing, p *publisher) {
				s.arrive(c)
				p.inFlight, p.finished = p.inFlight.minus(c), p.finished.with(c)
			}))
			emit(name+" fails, and may arrive later", s.change(i, func(s *publishing, p *publisher) {
				p.inFlight, s.underWay = p.inFlight.minus(c), s.underWay.with(c)
			}))
		} else if p.term > 0 && !p.finished.has(c) && p.mayFollow(g, c) {
			emit(fmt.Sprintf("term %d sends %s", p.term, name), s.change(i, func(_ *publishing, p *publisher) { p.inFlight = p.inFlight.with(c) }))
		}
	}
}

// mayFollow is whether nothing of its aggregate keeps a change from being sent.
func (p publisher) mayFollow(g publishingGuards, c int) bool {
	for earlier := range c {
		switch {
		case aggregate[earlier] != aggregate[c] || p.finished.has(earlier):
		case p.inFlight.has(earlier):
			if g.lane {
				return false
			}
		case g.front:
			return false
		}
	}
	return true
}

func (s publishing) saveSteps(g publishingGuards, i int, emit func(string, publishing)) {
	p := s.publishers[i]
	if p.term > 0 && p.save == (save{}) {
		if to := p.mark(g); to > p.saved && p.number < saves {
			emit(fmt.Sprintf("term %d saves %d", p.term, to), s.change(i, func(_ *publishing, p *publisher) {
				p.number++
				p.save = save{p.term, p.number, to}
			}))
		}
	}
	if p.save != (save{}) {
		emit("a save is handled", s.change(i, func(s *publishing, p *publisher) {
			if s.handle(g, p.save) {
				p.saved, p.save = p.save.position, save{}
			} else {
				s.stop(p)
				p.late = save{}
			}
		}))
		if p.late == (save{}) {
			emit("a save fails, and may arrive later", s.change(i, func(_ *publishing, p *publisher) {
				p.late, p.save = p.save, save{}
			}))
		}
	}
	if p.late != (save{}) {
		emit("a late save is handled", s.change(i, func(s *publishing, p *publisher) { s.handle(g, p.late); p.late = save{} }))
	}
}

// mark is how far a publisher may say that all is done.
func (p publisher) mark(g publishingGuards) int8 {
	if !g.idle && p.finished|p.inFlight == everything {
		return changes
	}
	if g.watermark {
		return p.finished.prefix()
	}
	var last int8
	for c := range changes {
		if p.finished.has(c) {
			last = int8(c) + 1
		}
	}
	return last
}

// handle is the store's side, one atomic step. It reports whether the term may
// go on.
func (s *publishing) handle(g publishingGuards, m save) bool {
	if g.term && m.term != s.term {
		return false
	}
	if !g.number || m.number > s.number {
		s.number, s.position = m.number, m.position
	}
	return true
}
