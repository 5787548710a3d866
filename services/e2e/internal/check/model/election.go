package model

import "slices"

// The election: three instances, one lease record, calls that arrive late.
//
// Time is counted in ticks that pass everywhere at once. The margin that
// covers clocks of different rates is the business of the simulation in
// package lease.

const (
	instances  = 3
	leaseTTL   = 2 // ticks
	trustTicks = 1 // tick: RenewDeadline, below the TTL
	takes      = 4 // calls for the lease there are
	restarts   = 1 // processes that die and come back
)

// electionGuards are what keeps an instance from trusting a lease that is not
// its own any more.
type electionGuards struct {
	fromBeforeTheCall bool // trust counts from before the call was sent, not from its answer
	deadlineBelowTTL  bool
	onlyWhenOver      bool // a take leaves a live lease of another as it is
	incarnation       bool // renewals and releases name the incarnation
	tenure            bool // and the tenure
}

func allElectionGuards() electionGuards { return electionGuards{true, true, true, true, true} }

// name is what a process calls itself beside its id, which is its place among
// the instances.
type name struct{ incarnation, tenure uint8 }

type callKind uint8

const (
	noCall callKind = iota
	take
	renew
	release
)

func (k callKind) String() string {
	return [...]string{"no call", "a take", "a renewal", "a release"}[k]
}

// call is a call to the store. For its sender, trust is how long the lease
// could be trusted if it succeeded.
type call struct {
	kind     callKind
	by       name
	trust    uint8
	answered bool // the store has handled it
	granted  bool
}

// instance is one process. It trusts the lease while trust is above 0.
type instance struct {
	self    name // its tenure is that of the last take
	trust   uint8
	leaving bool // has led and not released yet
	call    call // waiting for its answer
	late    call // not waited for any more; may still arrive
}

// election is a state.
type election struct {
	holder    int8  // the holder's place; nobody
	taken     name  // by this name
	left      uint8 // ticks until the lease is over
	takes     uint8 // made so far
	restarts  uint8
	instances [instances]instance
}

const nobody = -1

func electionMachine(g electionGuards) machine[election] {
	return machine[election]{
		initial: election{holder: nobody},
		next: func(s election, report func(string, election, string)) {
			emit := func(step string, to election) { report(step, to.sorted(), "") }
			emit("a tick passes", s.tick())
			for i := range s.instances {
				s.steps(g, i, emit)
			}
		},
		broken: func(s election) string {
			for i, p := range s.instances {
				if p.trust > 0 && (s.holder != int8(i) || s.taken != p.self || s.left == 0) {
					return "whoever trusts the lease holds it"
				}
			}
			return ""
		},
		done: func(s election) bool {
			led := func(p instance) bool { return p.trust > 0 }
			return slices.ContainsFunc(s.instances[:], led) || s.takes == takes
		},
	}
}

// sorted is the same state with the instances in one order: which of them is
// which makes no difference.
func (s election) sorted() election {
	for i := 1; i < instances; i++ {
		for k := i; k > 0 && s.instances[k].less(s.instances[k-1]); k-- {
			s.instances[k], s.instances[k-1] = s.instances[k-1], s.instances[k]
			switch s.holder {
			case int8(k):
				s.holder--
			case int8(k) - 1:
				s.holder++
			}
		}
	}
	return s
}

func (p instance) less(other instance) bool { return p.key() < other.key() }

// key is another number for every other instance.
func (p instance) key() uint64 {
	var key uint64
	digit := func(values ...uint8) {
		for _, v := range values {
			key = key<<3 | uint64(v)
		}
	}
	flag := func(values ...bool) {
		for _, v := range values {
			key <<= 1
			if v {
				key |= 1
			}
		}
	}
	digit(p.self.incarnation, p.self.tenure, p.trust)
	flag(p.leaving, p.call.answered, p.call.granted)
	for _, c := range []call{p.call, p.late} {
		digit(uint8(c.kind), c.by.incarnation, c.by.tenure, c.trust)
	}
	return key
}

func (s election) tick() election {
	s.left = less(s.left)
	for i := range s.instances {
		p := &s.instances[i]
		p.trust = less(p.trust)
		p.call.trust = less(p.call.trust)
	}
	return s
}

func less(ticks uint8) uint8 { return max(ticks, 1) - 1 }

// steps emits what instance i, and the store for it, can do.
func (s election) steps(g electionGuards, i int, emit func(string, election)) {
	with := func(step string, change func(*election, *instance)) {
		to := s
		change(&to, &to.instances[i])
		emit(step, to)
	}
	p := s.instances[i]
	switch {
	case p.call.kind == noCall && p.trust > 0:
		with("the leader calls for a renewal", func(_ *election, p *instance) { p.send(g, renew) })
		with("the leader stops leading", func(_ *election, p *instance) { p.trust = 0 })
	case p.call.kind == noCall && p.leaving:
		with("the last leader calls for a release", func(_ *election, p *instance) { p.send(g, release) })
		with("the last leader stands by again", func(_ *election, p *instance) { p.leaving = false })
	case p.call.kind == noCall && s.takes < takes:
		with("a standby calls for the lease", func(s *election, p *instance) { s.takes++; p.send(g, take) })
	case p.call.kind != noCall && !p.call.answered:
		with(p.call.kind.String()+" is handled", func(s *election, p *instance) { s.handle(g, int8(i), &p.call) })
		if p.late.kind == noCall {
			with(p.call.kind.String()+" is given up", func(_ *election, p *instance) { p.late, p.call = p.call.forgotten(), call{} })
		}
	case p.call.answered:
		with(p.call.kind.String()+" is answered", func(_ *election, p *instance) { p.answer(g) })
		with(p.call.kind.String()+" loses its answer", func(_ *election, p *instance) { p.call = call{} })
	}
	if p.late.kind != noCall {
		with("late, "+p.late.kind.String()+" is handled", func(s *election, p *instance) { s.handle(g, int8(i), &p.late); p.late = call{} })
		with("late, "+p.late.kind.String()+" is lost", func(_ *election, p *instance) { p.late = call{} })
	}
	if s.restarts < restarts {
		with("one dies and comes back", func(s *election, p *instance) {
			s.restarts++
			late := p.late
			if p.call.kind != noCall && !p.call.answered {
				late = p.call.forgotten()
			}
			self := p.self
			self.incarnation++
			self.tenure = 0 // a process counts from the beginning
			*p = instance{self: self, late: late}
		})
	}
}

func (p *instance) send(g electionGuards, kind callKind) {
	if kind == take {
		p.self.tenure++
	}
	p.call = call{kind: kind, by: p.self, trust: g.trustTicks()}
	if kind == release {
		p.call.trust = 0
	}
}

// forgotten is a call whose answer nobody waits for.
func (c call) forgotten() call {
	c.trust = 0
	return c
}

func (g electionGuards) trustTicks() uint8 {
	if g.deadlineBelowTTL {
		return trustTicks
	}
	return leaseTTL + 1
}

// handle is the store's side of a call by instance i, one atomic step.
func (s *election) handle(g electionGuards, i int8, c *call) {
	c.answered = true
	own := s.holder == i &&
		(!g.incarnation || s.taken.incarnation == c.by.incarnation) &&
		(!g.tenure || s.taken.tenure == c.by.tenure)
	earlier := s.holder == i && s.taken.incarnation == c.by.incarnation && s.taken.tenure < c.by.tenure
	switch c.kind {
	case take:
		c.granted = s.left == 0 || earlier || !g.onlyWhenOver
		if c.granted {
			s.holder, s.taken, s.left = i, c.by, leaseTTL
		}
	case renew:
		c.granted = own
		if c.granted {
			s.left = leaseTTL
		}
	case release:
		if own {
			s.holder, s.taken, s.left = nobody, name{}, 0
		}
	}
}

// answer is what the sender makes of it.
func (p *instance) answer(g electionGuards) {
	c := p.call
	p.call = call{}
	trust := c.trust
	if !g.fromBeforeTheCall {
		trust = g.trustTicks()
	}
	switch {
	case c.kind == release:
		p.leaving = false
	case !c.granted:
		p.trust = 0
	case c.kind == renew && p.trust == 0:
		// The deadline passed while it waited: what it led has ended.
	default:
		p.trust, p.leaving = trust, true
	}
}
