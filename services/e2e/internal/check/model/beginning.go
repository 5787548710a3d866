package model

import "slices"

// The beginning: two publishers, of which any may claim at any time, a state database
// with the stream's record beside its checkpoint, and an operator who deletes what is
// in there, or puts an older copy back. Of the two changes the second cannot be sent:
// it is parked in the same database.
//
// Whoever begins a term looks at record and checkpoint and raises the record's term,
// claims the checkpoint, and confirms in the record that it did. Of those who look
// before the first term is confirmed each may make the checkpoint: it begins where the
// record says, so that all is sent again. So may a stream that leaves nothing out and
// finds an empty database.
//
// Calls are answered at once here; that they may be late, and who sends what in which
// order, is publishing's. What only the memory of a running process finds out is left
// out: each looks as if it had just been started. Nothing is deleted or put back in the
// moment between a change that is parked and its mark, nor a checkpoint alone beside
// which changes were parked that are gone.

const (
	beginners   = 2
	beginClaims = 2
	mistakes    = 2 // of an operator who breaks something
	decisions   = 1 // of one who puts it right
	sendable    = 0 // the change that the topic takes
	unsendable  = 1 // and the one that is parked
	streamEnd   = 2
)

// beginningGuards are what keep a stream from beginning anew by accident, and from
// passing what an older state does not have.
type beginningGuards struct {
	missing bool // a record that is confirmed, and no checkpoint, stops the stream
	create  bool // a claim makes a checkpoint only where the record is not confirmed
	lost    bool // a checkpoint that was claimed beside a record, and no record, stops the stream
	ledger  bool // neither, and an entry in the ledger of gaps, stops the stream
	topic   bool // a new stream in a topic that another was in before it is stopped
	claim   bool // a save names the claim that it is of
	behind  bool // a save is refused where one that was answered is not there
	mark    bool // a parked change counts a save before the checkpoint may pass it
}

func allBeginningGuards() beginningGuards {
	return beginningGuards{true, true, true, true, true, true, true, true}
}

// kept is what the state database has of the stream.
type kept struct {
	recorded            bool // there is a record
	highest, confirmed  int8 // terms in the record: the last one raised, the last one confirmed
	exists              bool // there is a checkpoint
	term, number, claim int8
	position            int8
	parked              bool // the unsendable change
	begun               bool // the ledger of gaps has an entry of the stream
}

type stage uint8

const (
	standing stage = iota
	raised         // has looked, and has a term
	claimed        // has the checkpoint
	leading        // and has confirmed it
	marking        // has parked a change, and not counted it yet
)

// beginner is one process.
type beginner struct {
	stage       stage
	create      bool // may make the checkpoint
	knew        bool // has seen that a term was confirmed
	term, claim int8
	number      int8 // of its last save, which was answered
	ahead       int8 // what is sent or parked
}

// beginning is a state.
type beginning struct {
	kept, backup              kept
	backedUp                  bool
	inTopic                   bool // the topic has had a mark of the stream
	alone                     bool // the stream leaves out what the source had, and so must be the first
	sent                      bool // the sendable change
	led                       bool // the stream was led
	claims, mistakes, decided int8
	beginners                 [beginners]beginner
}

const (
	beginsOnce = "a stream that was led is not begun anew, unless an operator decides"
	passesKept = "the checkpoint passes only what was sent or is parked"
)

func beginningMachine(g beginningGuards) machine[beginning] {
	return machine[beginning]{
		next: func(s beginning, report func(string, beginning, string)) {
			emit := func(step string, to beginning, broken string) {
				slices.SortFunc(to.beginners[:], func(a, b beginner) int { return slices.Compare(a.key(), b.key()) })
				report(step, to, broken)
			}
			for i := range s.beginners {
				s.termSteps(g, i, emit)
				s.leaderSteps(g, i, emit)
			}
			s.operatorSteps(g, emit)
		},
		broken: func(s beginning) string {
			if s.kept.exists && (s.kept.position > sendable && !s.sent || s.kept.position > unsendable && !s.kept.parked) {
				return passesKept
			}
			return ""
		},
		done: func(s beginning) bool {
			return s.kept.exists && s.kept.position == streamEnd || s.claims == beginClaims || s.decided == decisions
		},
	}
}

// key is another list for every other process.
func (b beginner) key() []int8 {
	flags := int8(0)
	if b.create {
		flags++
	}
	if b.knew {
		flags += 2
	}
	return []int8{int8(b.stage), flags, b.term, b.claim, b.number, b.ahead}
}

// stops says whether what the state database has keeps a term from beginning.
func (s *beginning) stops(g beginningGuards) bool {
	k := s.kept
	switch {
	case k.recorded && !k.exists:
		return g.missing && k.confirmed > 0
	case !k.recorded && k.exists:
		return g.lost
	case !k.recorded && !k.exists:
		return g.ledger && k.begun || g.topic && s.alone && s.inTopic
	}
	return false
}

// termSteps are those to a term, and out of it.
func (s beginning) termSteps(g beginningGuards, i int, emit func(string, beginning, string)) {
	to := s
	k, b := &to.kept, &to.beginners[i]
	switch b.stage {
	case standing:
		if s.claims == beginClaims || s.stops(g) {
			return
		}
		broken, step := "", "somebody looks and raises the term"
		if !k.recorded {
			step = "somebody makes the record and raises the term"
			k.recorded, k.highest, k.confirmed, to.inTopic = true, k.term, k.term, true
			if s.led && (s.alone || s.kept.begun || s.kept.exists) {
				broken = beginsOnce
			}
		}
		k.highest++
		*b = beginner{stage: raised, term: k.highest, claim: s.claims + 1, knew: k.confirmed > 0}
		b.create = !b.knew || !g.create || !g.missing
		to.claims++
		emit(step, to, broken)
		if s.claims == 0 {
			to.alone = true
			emit(step+" of a stream that is to be the first", to, broken)
		}
	case raised:
		s.claimStep(i, emit)
	case claimed:
		b.stage = leading
		k.confirmed, k.highest = max(k.confirmed, b.term), max(k.highest, b.term)
		to.led = true
		if !s.kept.recorded || s.kept.confirmed > b.term {
			to = s
			to.beginners[i] = beginner{} // there is nothing to confirm in
		}
		emit("the claim is confirmed", to, "")
	case leading, marking:
	}
	if b.stage > raised {
		to = s
		to.beginners[i] = beginner{}
		emit("somebody dies", to, "")
	}
}

// claimStep claims the checkpoint in a term that was raised.
func (s beginning) claimStep(i int, emit func(string, beginning, string)) {
	k, b := &s.kept, &s.beginners[i]
	if !k.exists && !b.create {
		*b = beginner{}
		emit("the checkpoint is gone, and not claimed", s, "")
		return
	}
	broken := ""
	if !k.exists {
		k.position = 0
		if b.knew {
			broken = beginsOnce
		}
	}
	k.term = max(k.term, b.term-1) + 1
	k.exists, k.number, k.claim, k.begun = true, 0, b.claim, true
	*b = beginner{stage: claimed, term: k.term, claim: k.claim, ahead: k.position}
	emit("the checkpoint is claimed", s, broken)
}

// leaderSteps are those of whoever has a term.
func (s beginning) leaderSteps(g beginningGuards, i int, emit func(string, beginning, string)) {
	p := s.beginners[i]
	change := func(step string, do func(*beginning, *beginner)) {
		to := s
		do(&to, &to.beginners[i])
		emit(step, to, "")
	}
	switch {
	case p.stage == marking:
		change("what was parked is counted", func(s *beginning, b *beginner) { s.save(g, b, s.kept.position, leading) })
	case p.stage != leading:
	case p.ahead == sendable:
		change("a change is sent", func(s *beginning, b *beginner) { s.sent, b.ahead = true, b.ahead+1 })
	case p.ahead == unsendable:
		change("a change is parked", func(s *beginning, b *beginner) {
			s.kept.parked, b.ahead = true, b.ahead+1
			if g.mark {
				b.stage = marking
			}
		})
	}
	if p.stage == leading && p.ahead > 0 && (!s.kept.exists || s.kept.position < p.ahead) {
		change("the checkpoint is saved", func(s *beginning, b *beginner) { s.save(g, b, b.ahead, leading) })
	}
}

// save is the store's side of a save: it ends the term that it refuses.
func (s *beginning) save(g beginningGuards, b *beginner, position int8, then stage) {
	k := &s.kept
	if !k.exists || k.term != b.term || g.claim && k.claim != b.claim || g.behind && k.number < b.number || k.number > b.number {
		*b = beginner{}
		return
	}
	b.number, b.stage = b.number+1, then
	k.number, k.position = b.number, position
}

// operatorSteps are what operators break, and what they decide.
func (s beginning) operatorSteps(g beginningGuards, emit func(string, beginning, string)) {
	k := s.kept
	mistake := func(step string, to kept) {
		next := s
		next.kept, next.mistakes = to, s.mistakes+1
		emit(step, next, "")
	}
	without := k
	without.exists, without.term, without.number, without.claim, without.position = false, 0, 0, 0, 0
	unrecorded, neither := k, without
	unrecorded.recorded, unrecorded.highest, unrecorded.confirmed = false, 0, 0
	neither.recorded, neither.highest, neither.confirmed = false, 0, 0
	between := func(b beginner) bool { return b.stage == marking }
	if s.mistakes < mistakes && !slices.ContainsFunc(s.beginners[:], between) {
		mistake("the checkpoint is deleted", without)
		mistake("the record is deleted", unrecorded)
		mistake("record and checkpoint are deleted", neither)
		mistake("the state database is emptied", kept{})
		if s.backedUp {
			older := k
			older.exists, older.term, older.number, older.claim, older.position = s.backup.exists, s.backup.term, s.backup.number, s.backup.claim, s.backup.position
			if k.parked || !s.backup.parked {
				mistake("an older checkpoint is put back", older)
			}
			mistake("an older state database is put back", s.backup)
		}
	}
	if !s.backedUp {
		next := s
		next.backup, next.backedUp = k, true
		emit("the state database is copied", next, "")
	}
	if s.decided < decisions && s.stops(g) {
		next := s
		next.decided++
		next.decide()
		emit("an operator decides", next, "")
	}
}

// decide goes on from the checkpoint, or, where it is gone, from the beginning: in a
// term and a claim of its own, so that whoever had one is refused.
func (s *beginning) decide() {
	k := &s.kept
	if !k.exists {
		k.position = 0
	}
	term := max(k.highest, k.term) + 1
	k.recorded, k.exists, k.begun, s.inTopic = true, true, true, true
	k.term, k.highest, k.confirmed, k.number, k.claim = term, term, term, 0, -1
}
