package projection

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"changerelay/pkg/contract"
)

// A projection's policy decides what becomes of an event that it cannot apply: an Action
// for each Class of failure.
//
// The invariant: to the projection, a skipped event is one that changes nothing, and its
// record is stored in the transaction that moves the position over it. So a skipped event
// is never taken for a missing one, its repeats are repeats, and no document has later
// events without a record of what it lacks.
//
// An event is skipped only for the projection that fails; the others apply it. Where the
// policy of any failing projection halts or stops, none applies the event.

// Class is why a projection cannot apply an event.
type Class string

// The classes. Some failures belong to none: a message that cannot be read, an event of
// another source, one from before the aggregate's beginning here, and what fails only for
// a time. They say nothing against the event, and halt whatever the policy is.
const (
	// Evaluate: the projection cannot decide what to write.
	Evaluate Class = "evaluate"
	// Store: the read database refuses the write for its content.
	Store Class = "store"
	// Crash: processes have died of the message.
	Crash Class = "crash"
)

// Action is what becomes of an event that a projection cannot apply.
type Action string

// The actions, from the mildest to the one that stops most.
const (
	// Skip leaves the event out, and records it with its message.
	Skip Action = "skip"
	// DeadLetter sends the message to the dead letters, records that, and goes on. The
	// projection's position stays, so that the event can be put back as long as nothing
	// later was applied.
	DeadLetter Action = "deadletter"
	// Halt halts the aggregate.
	Halt Action = "halt"
	// Stop leaves the message where it is, and all projectors take no more sessions.
	Stop Action = "stop"
)

var (
	classes = []Class{Evaluate, Store, Crash}
	actions = []Action{Skip, DeadLetter, Halt, Stop}
)

// Policy says what becomes of events that a projection cannot apply. A class without an
// action takes the default's, and Halt where that has none either.
type Policy map[Class]Action

// On is the action for a class.
func (p Policy) On(c Class) Action { return cmp.Or(p[c], Halt) }

// Over is the policy, with another one for the classes that it leaves open.
func (p Policy) Over(by Policy) Policy {
	all := Policy{}
	for _, c := range classes {
		if action := cmp.Or(p[c], by[c]); action != "" {
			all[c] = action
		}
	}
	return all
}

// problems are what is wrong with the policy.
func (p Policy) problems() (problems []string) {
	for _, c := range classes {
		if action := p[c]; action != "" && !slices.Contains(actions, action) {
			problems = append(problems, fmt.Sprintf("%s: %q is not one of %s", c, action, listed(actions)))
		}
	}
	return problems
}

// set sets an action by its name, of a class or, with "", of all.
func (p Policy) set(class, action string) error {
	if !slices.Contains(actions, Action(action)) {
		return fmt.Errorf("%q is not one of %s", action, listed(actions))
	}
	if class == "" {
		for _, c := range classes {
			p[c] = Action(action)
		}
		return nil
	}
	if !slices.Contains(classes, Class(class)) {
		return fmt.Errorf("%q is not one of %s", class, listed(classes))
	}
	if p[Class(class)] != "" {
		return fmt.Errorf("%s is there twice", class)
	}
	p[Class(class)] = Action(action)
	return nil
}

// ParsePolicy reads a policy: an action for all classes, or class=action pairs separated
// by commas.
func ParsePolicy(text string) (Policy, error) {
	p := Policy{}
	for part := range strings.SplitSeq(text, ",") {
		class, action, several := strings.Cut(strings.TrimSpace(part), "=")
		if !several && strings.Contains(text, ",") {
			return nil, fmt.Errorf("%q is not class=action", part)
		}
		if !several {
			class, action = "", class
		} else if class == "" {
			return nil, fmt.Errorf("%q names no class; there are %s", part, listed(classes))
		}
		if err := p.set(class, action); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func listed[T ~string](names []T) string {
	all := make([]string, len(names))
	for i := range names {
		all[i] = string(names[i])
	}
	return strings.Join(all, ", ")
}

// Guarded is a projection with a policy of its own.
type Guarded interface {
	OnError() Policy
}

// Unchanging is a projection that can move its position over an event that changes
// nothing. Other projections keep their position, and later events are applied over the
// one that was left out.
type Unchanging interface {
	Unchanged(c *Change) []Write
}

// Skipped is an event that a projection does not apply, by its policy.
type Skipped struct {
	Class  Class
	Action Action // Skip or DeadLetter
	Reason string
	// Message carried the event; the caller that has it fills it in.
	Message *contract.Message
}

// Describe says in one line which projection does not apply the event, and why.
func (s *Skipped) Describe(projection string) string {
	reason := strings.ReplaceAll(s.Reason, "\n", "; ")
	if !strings.Contains(reason, strconv.Quote(projection)) {
		reason = fmt.Sprintf("projection %q: %s", projection, reason)
	}
	return fmt.Sprintf("%s: %s", s.Class, reason)
}

// Failure says why no projection applies an event.
type Failure struct {
	// Projection is the one that is to blame; "" where none is known to be.
	Projection string
	Class      Class
	Action     Action // Halt or Stop
	Err        error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// Policed decides as projections do under their policies.
type Policed struct {
	Projections
	// Default is for the classes that a projection's own policy leaves open.
	Default Policy
	// Filled are those among them that resends fill.
	Filled Projections
}

// Policy is the policy of a projection.
func (ps Policed) Policy(p Projection) Policy {
	if g, is := p.(Guarded); is {
		return g.OnError().Over(ps.Default)
	}
	return ps.Default
}

// LeavesOut tells whether the policy of any projection goes on without an event.
func (ps Policed) LeavesOut() bool {
	for _, p := range ps.Projections {
		policy := ps.Policy(p)
		for _, c := range classes {
			if action := policy.On(c); action == Skip || action == DeadLetter {
				return true
			}
		}
	}
	return false
}

// Decide gathers the writes of all projections that decide about a change, and skips the
// event for those that cannot. Each projection is asked once, since one in Go may take long
// to fail. The error is ErrInterrupted, or a *Failure where a policy halts or stops.
func (ps Policed) Decide(c *Change) ([]Write, error) {
	var writes []Write
	var worst *Failure
	for _, p := range ps.deciders(c) {
		decided, err := decide(p, c)
		if errors.Is(err, ErrInterrupted) {
			return nil, err
		}
		if err != nil {
			var failure *Failure
			decided, failure = ps.skip(p, c, Evaluate, err)
			worst = worse(worst, failure)
		}
		writes = append(writes, decided...)
	}
	if worst != nil {
		return nil, worst
	}
	return writes, nil
}

// Skip are the writes that take the place of those of the projection called name, or,
// where that is "", of all projections that follow the event, of which none is to blame.
// The error is a *Failure where a policy halts or stops.
func (ps Policed) Skip(c *Change, class Class, reason, name string) ([]Write, error) {
	names := []string{name}
	if name == "" {
		names = ps.Followers(c.Type)
		if c.Fills != "" && !slices.Contains(names, c.Fills) {
			return ps.Projections.Decide(c)
		}
	}
	var writes []Write
	var worst *Failure
	for _, p := range ps.deciders(c) {
		if slices.Contains(names, p.Name()) {
			given, failure := ps.skip(p, c, class, errors.New(reason))
			writes, worst = append(writes, given...), worse(worst, failure)
		}
	}
	if worst == nil && len(writes) == 0 { // nobody follows it, so nobody says what becomes of it
		worst = &Failure{Class: class, Action: Halt, Err: errors.New(reason)}
	}
	if worst != nil {
		if name == "" {
			worst.Projection = ""
		}
		return nil, worst
	}
	return writes, nil
}

// skip returns the writes that take the place of a projection's, or why there are none.
// A version that is filled has nothing dead-lettered: the source has it, and the version has
// to come as far as the current one, and to go on from there.
func (ps Policed) skip(p Projection, c *Change, class Class, err error) ([]Write, *Failure) {
	action := ps.Policy(p).On(class)
	filled := c.Fills == p.Name() || slices.ContainsFunc(ps.Filled, func(f Projection) bool { return f.Name() == p.Name() })
	if action == DeadLetter && filled {
		action = Skip
	}
	if action == Halt || action == Stop {
		return nil, &Failure{p.Name(), class, action, err}
	}
	writes := []Write{{Projection: p.Name(), Passed: true, Event: &c.Event}}
	var moving []Write
	if u, is := p.(Unchanging); is {
		moving = u.Unchanged(c)
	}
	switch {
	case len(moving) == 0:
	case action == Skip:
		writes = moving
	default: // where the position is that shows whether the event was applied
		writes[0].Collection, writes[0].ID = moving[0].Collection, moving[0].ID
	}
	writes[0].Skipped = &Skipped{Class: class, Action: action, Reason: err.Error()}
	return writes, nil
}

// worse is the failure that stops more, and the first of two that stop the same.
func worse(a, b *Failure) *Failure {
	if a == nil || b != nil && slices.Index(actions, b.Action) > slices.Index(actions, a.Action) {
		return b
	}
	return a
}

// Unchanged implements Unchanging.
func (l Latest) Unchanged(c *Change) []Write {
	return []Write{{Projection: l.Name(), Collection: l.Collection, ID: c.AggregateID, Event: &c.Event, Kept: true}}
}
