package delivery

import "changerelay/pkg/contract"

// chain is how far a hold's events follow each other. It begins with an event that
// this hold has applied: then nothing after it was dealt with before. What comes
// again says nothing of the kind, since of what follows it some may not come again.
type chain struct {
	last contract.Version // unknown where there is no chain
}

// follow goes on to an event that was dealt with, and returns how many versions are
// missing before it.
func (c *chain) follow(next contract.Version, outcome Outcome) (missing int64) {
	switch {
	case !next.Known || c.last.Known && next.Number <= c.last.Number:
	case outcome == Repeated:
		*c = chain{}
	case c.last.Known:
		c.last, missing = next, next.Number-c.last.Number-1
	case outcome == Applied:
		c.last = next
	}
	return missing
}
