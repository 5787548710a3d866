package model

import "fmt"

// The rebuilding: one aggregate of two events, in one session, and a projection whose
// documents are built anew as a next version beside the current one. The first event was
// applied long ago, and the document may have been lost since. Two projectors, of which
// one has the session at a time, work each by the record of the rebuild as it has seen it;
// one may die, or stand still for so long that nobody counts it any more. A command carries
// the rebuild on, and may end, with the rebuild, or go back to the old documents.
//
// What is sent again comes as the resending has it: each event behind its own, in order,
// and the last of them when nothing later is in the topic. Versions have no holes, so the
// command need not compare what two versions have; it does, for those that have some.

const (
	rebuilders  = 2
	mostRebuilt = 2 // rebuilds; the first may be cancelled
	happened    = 2 // events
	sessionSize = 5
)

// rebuildingGuards are what lets readers see old or new documents, and no others.
type rebuildingGuards struct {
	known   bool // a step is taken when every projector that lives works by the record
	silent  bool // one that was not counted looks at the record before it applies
	next    bool // a live event is taken behind the one before it alone
	resent  bool // the next version follows when the resend is done
	arrived bool // and what was resent has arrived
	both    bool // the current version is written until the next one is settled
	number  bool // no two versions have one number
}

func allRebuildingGuards() rebuildingGuards {
	return rebuildingGuards{true, true, true, true, true, true, true}
}

type rebuildState uint8

const (
	settled rebuildState = iota
	filling
	following
)

// version is a document of a version: which events it is made of, by bits. The zero
// version is none.
type version uint8

func (v version) reached() int8 {
	for n := int8(happened); n > 0; n-- {
		if v&(1<<n) != 0 {
			return n
		}
	}
	return 0
}

// whole reports whether none is missing before the last one.
func (v version) whole() bool { return v == 1<<(v.reached()+1)-2 }

// all reports whether none is missing at all.
func (v version) all() bool { return v.whole() && v.reached() == happened }

// with is the document once a write of an event has met its guard: a lower sequence.
func (v version) with(event int8) version {
	if event > v.reached() {
		v |= 1 << event
	}
	return v
}

// sent is a message: an event, and for which version it is sent again; 0 where it is live.
type sent struct{ event, to int8 }

// decided is what becomes of a message. The zero value is nothing.
type decided struct {
	event         int8
	current, next int8 // the numbers of the versions that are written; 0 for none
	written       bool
}

// rebuildRecord is what projectors work by: the current version, and the next one, 0 for
// none.
type rebuildRecord struct {
	state         rebuildState
	current, next int8
}

type rebuilder struct {
	record rebuildRecord // as it works by it
	frozen bool          // for so long that nobody counts it
	silent bool          // it was frozen, and has not looked since
	hand   decided
	late   decided // a write of one that died, which may come yet
}

// rebuilding is a state.
type rebuilding struct {
	topic   int8 // live events so far
	session [sessionSize]sent
	length  int8
	holder  int8 // of the session; 0 is nobody

	documents [mostRebuilt + 2]version // by number of the version; 1 is the first
	lost      bool

	record   rebuildRecord
	switched bool // readers see the next version
	began    int8 // rebuilds
	asked    bool // for the resend
	again    int8 // the last event that it has sent
	done     bool

	arrived bool // the command has seen nothing in the session since the resend was done
	shown   int8 // what readers have seen at most
	works   [rebuilders]rebuilder
}

const (
	nextIsWhole = "a version that is built anew misses nothing"
	readersGoOn = "readers never see less than before"
)

func rebuildingMachine(g rebuildingGuards) machine[rebuilding] {
	record := rebuildRecord{current: 1}
	first := rebuilding{topic: 1, record: record, shown: 1}
	first.works = [rebuilders]rebuilder{{record: record}, {record: record}}
	first.documents[1] = version(0).with(1)
	return machine[rebuilding]{
		initial: first,
		next: func(s rebuilding, emit func(string, rebuilding, string)) {
			step := func(name string, to rebuilding) {
				broken := to.look()
				emit(name, to, broken)
			}
			s.outside(step)
			s.command(g, step)
			for i := range s.works {
				s.projector(g, i, step)
			}
		},
		broken: func(rebuilding) string { return "" },
		done:   func(s rebuilding) bool { return s.ended() && s.documents[s.record.current].all() },
	}
}

// ended reports whether the last rebuild is, and nothing is left to do.
func (s *rebuilding) ended() bool {
	return s.began == mostRebuilt && s.record.state == settled && s.length == 0 && s.topic == happened
}

// look notes what readers see, and returns the promise that is broken.
func (s *rebuilding) look() string {
	if s.record.next != 0 && !s.documents[s.record.next].whole() {
		return nextIsWhole
	}
	seen := s.documents[s.record.current].reached()
	if s.switched {
		seen = s.documents[s.record.next].reached()
	}
	if seen < s.shown {
		return readersGoOn
	}
	s.shown = seen
	return ""
}

// outside is what the source, the topic and an operator's hand do.
func (s rebuilding) outside(step func(string, rebuilding)) {
	if s.topic < happened && s.length < sessionSize {
		to := s
		to.topic++
		to.push(sentLive(to.topic))
		step(fmt.Sprintf("%d comes", to.topic), to)
	}
	if s.asked && !s.done && s.again < s.topic && s.length < sessionSize {
		to := s
		to.again++
		to.push(sent{to.again, s.record.next})
		step(fmt.Sprintf("%d comes again", to.again), to)
	}
	if s.asked && !s.done && s.again == s.topic {
		to := s
		to.done = true
		step("the resend is done", to)
	}
	if !s.lost && s.began == 0 {
		to := s
		to.lost, to.shown = true, 0
		to.documents[1] = 0
		step("the document is lost", to)
	}
}

func sentLive(event int8) sent { return sent{event: event} }

func (s *rebuilding) push(message sent) {
	s.session[s.length] = message
	s.length++
}

// command is what carries the rebuild on. It goes by what is stored alone, so that it is
// the same whether one dies and another goes on.
func (s rebuilding) command(g rebuildingGuards, step func(string, rebuilding)) {
	known := s.known() || !g.known
	done, arrived := s.done || !g.resent, s.arrived || !g.arrived
	to := s
	switch s.record.state {
	case settled:
		if s.began < mostRebuilt {
			to.begin(g)
			step("a rebuild begins", to)
		}
		return
	case filling:
		switch {
		case known && !s.asked:
			to.asked = true
			step("the command asks for the resend", to)
		case s.asked && done && s.length == 0 && !s.arrived:
			to.arrived = true
			step("the command finds that all has arrived", to)
		case s.asked && done && arrived:
			to.record.state = following
			step("the next version follows", to)
		}
	case following:
		switch {
		case s.switched:
			to.record, to.switched = rebuildRecord{current: s.record.next}, false
			step("the next version takes the place of the current one", to)
		case known:
			to.switched = true
			step("readers are switched", to)
		}
	}
	if s.began < mostRebuilt {
		to := s
		to.record, to.switched, to.asked = rebuildRecord{current: s.record.current}, false, false
		if s.lost { // the old documents lack what they have lacked before
			to.shown = s.documents[s.record.current].reached()
		}
		step("the rebuild is cancelled", to)
	}
}

// begin is the record with a next version.
func (s *rebuilding) begin(g rebuildingGuards) {
	s.began++
	next := s.began + 1
	if !g.number {
		next = s.record.current + 1
	}
	s.documents[next] = 0 // what was there is dropped
	s.record.next, s.record.state = next, filling
	s.asked, s.again, s.done, s.arrived = false, 0, false, false
}

// known reports whether every projector that is counted works by the record.
func (s *rebuilding) known() bool {
	for _, p := range s.works {
		if !p.frozen && p.record != s.record {
			return false
		}
	}
	return true
}

// projector is what one of them does.
func (s rebuilding) projector(g rebuildingGuards, i int, step func(string, rebuilding)) {
	name := fmt.Sprintf("projector %d", i+1)
	p := s.works[i]
	if p.late.event != 0 {
		to := s
		to.write(p.late)
		to.works[i].late = decided{}
		step(fmt.Sprintf("a late write of %d by %s arrives", p.late.event, name), to)
	}
	if p.frozen {
		to := s
		to.works[i].frozen = false
		step(name+" goes on", to)
		return
	}
	idle := p.hand == decided{}
	if idle && (p.record != s.record || p.silent) {
		to := s
		to.works[i].record, to.works[i].silent = s.record, false
		step(name+" looks at the record", to)
	}
	s.fail(i, name, step)
	if p.silent && g.silent {
		return
	}
	to := s
	switch mine := s.holder == int8(i+1); {
	case !idle && !p.hand.written:
		to.write(p.hand)
		to.works[i].hand.written = true
		step(fmt.Sprintf("%s writes %d", name, p.hand.event), to)
	case !mine && idle:
		to.holder = int8(i + 1)
		step(name+" takes the session", to)
	case mine && idle && s.length > 0:
		to.works[i].hand = s.decide(g, p.record, s.session[0])
		step(fmt.Sprintf("%s receives %v", name, s.session[0]), to)
	case mine && !idle:
		to.shift()
		to.works[i].hand = decided{}
		step(fmt.Sprintf("%s completes %d", name, p.hand.event), to)
	}
}

// fail is how a projector ends, stands still, or loses its session.
func (s rebuilding) fail(i int, name string, step func(string, rebuilding)) {
	p := s.works[i]
	to := s
	mine := &to.works[i]
	switch idle := p.hand == (decided{}); {
	case idle && s.began > 0 && p.late.event == 0:
		// What it has in hand it gives up before nobody counts it.
		mine.frozen, mine.silent = true, true
		to.leave(i)
		step(name+" stands still for long", to)
	case !idle && s.holder != int8(i+1) && p.hand.written:
		mine.hand = decided{}
		step(name+" finds that its session is gone", to)
	case !idle && !p.hand.written && p.late.event == 0:
		*mine = rebuilder{record: s.record, late: p.hand}
		to.leave(i)
		step(name+" dies at a write, and begins again", to)
	}
}

func (s *rebuilding) leave(i int) {
	if s.holder == int8(i+1) {
		s.holder = 0
	}
}

// decide is what a projector does with a message that works by a record.
func (s *rebuilding) decide(g rebuildingGuards, by rebuildRecord, message sent) decided {
	d := decided{event: message.event}
	if message.to != 0 {
		if message.to == by.next {
			d.next = by.next
		}
		d.written = d.next == 0 // it is for nobody, and passed by
		return d
	}
	d.current = by.current
	if by.next == 0 {
		return d
	}
	next, current := s.documents[by.next].reached(), s.documents[by.current].reached()
	if next > 0 && next == message.event-1 || by.state == following && next >= current || !g.next {
		d.next = by.next
	}
	if by.state == following && !g.both {
		d.current = 0
	}
	return d
}

func (s *rebuilding) write(d decided) {
	for _, number := range []int8{d.current, d.next} {
		if number != 0 {
			s.documents[number] = s.documents[number].with(d.event)
		}
	}
}

func (s *rebuilding) shift() {
	copy(s.session[:], s.session[1:])
	s.session[sessionSize-1] = sent{}
	s.length--
}
