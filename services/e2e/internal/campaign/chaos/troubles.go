package chaos

import (
	"math"
	"slices"
	"strings"
	"time"

	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
)

// effect is what a fault can do to those who suffer it, beyond hindering them.
type effect struct {
	// delays says that what was sent can arrive late.
	delays bool
	// takes says that sessions can be taken from holders at work, or held for longer than
	// they last.
	takes bool
	// shared says that all services suffer it.
	shared bool
	// since how long before it, and for how long after it is undone.
	before, after time.Duration
}

// effects are those of the faults that have some, by their names.
var effects = map[string]effect{
	killedLeader:                        {delays: true}, // what it has handed to the network
	"SIGKILL of a publisher":            {delays: true},
	"SIGSTOP of the leader":             {delays: true},
	"SIGSTOP of a projector":            {takes: true},
	"cut connection":                    {delays: true, takes: true},
	"half-open connection":              {delays: true, takes: true},
	"slow connection":                   {delays: true},
	"narrow connection":                 {delays: true},
	"reset connection":                  {delays: true, takes: true},
	"wrong clock of a publisher":        {delays: true, after: steadyClock}, // then it jumps
	"wrong clock of a projector":        {takes: true, after: steadyClock},
	serversClock:                        {delays: true, takes: true, shared: true, before: serversWrong, after: serversWrong},
	"SIGSTOP of the servers":            {delays: true, takes: true, shared: true},
	"SIGKILL of the servers, data kept": {takes: true, shared: true},
	"full disk of the servers":          {takes: true, shared: true},
	"another world":                     {delays: true, shared: true},
	"links detached":                    {takes: true, shared: true},
	"session locks lost":                {takes: true, shared: true},
	"repeated deliveries":               {takes: true, shared: true},
	"broker connections cut":            {takes: true, shared: true},
	slowServers:                         {delays: true, takes: true, shared: true},
}

// slowServers is that the servers answered late, for whatever reason.
const slowServers = "servers that answer late"

// serversClock is the fault that lasts until the servers are started again. Times are
// theirs, and wrong by as much as their clock is.
const serversClock = "wrong clock of the servers"

// restarts are the faults that start the servers with a clock that is right.
var restarts = []string{"SIGKILL of the servers, data kept", "full disk of the servers"}

// suffering is a fault that was done.
type suffering struct {
	kind string
	// nodes are those that it was done to.
	nodes []string
	from  time.Time
	to    time.Time
}

// suffered notes that a fault of a kind, which names whom it was done to, is over now.
func (c *campaign) suffered(kind, what string, from time.Time) {
	s := suffering{kind: kind, from: from, to: time.Now()}
	for _, n := range c.services() {
		if slices.Contains(strings.Fields(what), n.Name) {
			s.nodes = append(s.nodes, n.Name)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sufferings = append(c.sufferings, s)
}

// answeredLate notes that the servers answered late.
func (c *campaign) answeredLate(from, to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sufferings = append(c.sufferings, suffering{kind: slowServers, from: from, to: to})
}

// troubles are the times in which faults had an effect. Servers that are given have a
// clock that is not the campaign's, by which any time may be such a one.
func (c *campaign) troubles(has func(effect) bool) []validate.Trouble {
	if c.cfg.Backend != nil {
		return []validate.Trouble{{To: endless}}
	}
	var all []validate.Trouble
	for _, s := range c.sufferings {
		of := effects[s.kind]
		if !has(of) {
			continue
		}
		if s.kind == serversClock {
			s.to = c.clockRight(s.to)
		}
		if of.shared {
			s.nodes = []string{""}
		}
		for _, node := range s.nodes {
			all = append(all, validate.Trouble{Node: node, From: s.from.Add(-of.before), To: s.to.Add(of.after)})
		}
	}
	return all
}

// endless is the end of what has none.
var endless = time.Unix(math.MaxInt32, 0)

// clockRight is when the servers were next started with a clock that is right.
func (c *campaign) clockRight(after time.Time) time.Time {
	right := endless
	for _, s := range c.sufferings {
		if slices.Contains(restarts, s.kind) && s.to.After(after) && s.to.Before(right) {
			right = s.to
		}
	}
	return right
}

const (
	// inFlight bounds how long what was held up takes to arrive.
	inFlight = 5 * time.Second
	// inHand bounds how long a hold works on what it has received.
	inHand = 5 * time.Second
)

// histories are what faults can explain the oddities of.
type histories struct {
	sends   []validate.Send
	claims  []validate.Checkpoint
	applies []validate.Apply
}

// explained returns how many violations of a kind a fault explains, and those that none
// does; false where none can.
func (c *campaign) explained(kind string, h histories) (by report.Figure, unexplained validate.Findings, can bool) {
	var caused validate.Findings
	switch kind {
	case witness.OverlappingTerms:
		// A leader that is frozen between asking its lease and sending sends late.
		// That is harmless: docs/guarantees.md, G2.
		caused, unexplained = validate.LateSends(h.sends, h.claims, c.troubles(func(e effect) bool { return e.delays }), c.cfg.Lease, inFlight)
		by = report.Figure{Name: "messages " + kind, Note: "allowed: a fault held up their leader, or what it had sent"}
	case witness.WorkedOnAtOnce:
		// Session locks are taken from holders who cannot know: what they have in
		// hand they may still write, and the guard judges.
		caused, unexplained = validate.LateWrites(h.applies, c.troubles(func(e effect) bool { return e.takes }), inHand)
		by = report.Figure{Name: kind, Note: "allowed: a fault took the session from a holder at work"}
	default:
		return by, unexplained, false
	}
	by.Value, by.Unit = float64(caused.Count), report.Count
	return by, unexplained, true
}
