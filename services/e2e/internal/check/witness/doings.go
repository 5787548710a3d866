package witness

import (
	"slices"
	"time"

	"changerelay/services/e2e/internal/check/validate"
)

// Doings are what operators have done, as they themselves know: what a ledger says beside
// that, nobody has decided.
type Doings struct {
	// LeftOut are the events that they have given up, by the groups of projectors; the first
	// has no name.
	LeftOut map[string]LeftOut
	// Moves are the commands that they have run about checkpoints, whether or not they were
	// refused.
	Moves []Move
}

// LeftOut are events that operators have given up, with how.
type LeftOut map[validate.Event]Leaving

// Leaving is how operators have given an event up.
type Leaving struct {
	// Changes are the ids under which it was parked as a change, before it came to the topic.
	Changes []string
	// Deleted says that its message was deleted where it was parked, so that a ledger can
	// name no more of it than its aggregate.
	Deleted bool
}

// aggregates are those of which something was given up.
func (l LeftOut) aggregates() map[string]bool {
	all := make(map[string]bool)
	for e := range l {
		all[e.Aggregate] = true
	}
	return all
}

// changes are the ids of all changes that were given up.
func (l LeftOut) changes() map[string]bool {
	all := make(map[string]bool)
	for _, how := range l {
		for _, id := range how.Changes {
			all[id] = true
		}
	}
	return all
}

// Move is a command about a checkpoint, and when it ran.
type Move struct {
	// Decision is what a line of the ledger calls it: set, reset or accept.
	Decision string
	From, To time.Time
}

// made says whether one of the commands has made a line of the ledger, whose time is known
// to the millisecond.
func made(g Gap, moves []Move) bool {
	return slices.ContainsFunc(moves, func(m Move) bool {
		return m.Decision == g.Decision && !g.At.Before(m.From.Truncate(time.Millisecond)) && !g.At.After(m.To)
	})
}
