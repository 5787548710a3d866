package chaos

import (
	"context"
	"slices"
	"time"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
)

const (
	// readModelGroup is the setting of the projectors that names their group.
	readModelGroup = "READMODEL_GROUP"
	// ownGroup is that of the projectors that are judged first.
	ownGroup = ""
)

// giveUp notes that an operator leaves an event out of a group's read model.
func (c *campaign) giveUp(group, aggregate string, version int64, how witness.Leaving) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leftOut[group] == nil {
		c.leftOut[group] = make(witness.LeftOut)
	}
	this := validate.Event{Aggregate: aggregate, Version: version}
	before := c.leftOut[group][this]
	c.leftOut[group][this] = witness.Leaving{
		Changes: slices.Concat(before.Changes, how.Changes), Deleted: before.Deleted || how.Deleted,
	}
}

// giveUpChange notes that an operator leaves the event of an order out that cannot be
// sent, and which is parked under an id.
func (c *campaign) giveUpChange(o *odd, id string) {
	c.giveUp(ownGroup, o.aggregate, wrongVersion, witness.Leaving{Changes: []string{id}})
}

// decide runs a command of an operator, and notes when it was about a checkpoint. Where it
// fails, it may have decided all the same.
func (c *campaign) decide(ctx context.Context, n *cluster.Node, env []string, args ...string) (string, error) {
	from := time.Now()
	output, err := n.CommandIn(ctx, env, args...)
	if len(args) > 1 && args[0] == "checkpoint" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.moves = append(c.moves, witness.Move{Decision: args[1], From: from, To: time.Now()})
	}
	return output, err
}

// doings are what operators have done.
func (c *campaign) doings() witness.Doings {
	return witness.Doings{LeftOut: c.leftOut, Moves: c.moves}
}

// given is how many events operators have left out, of all groups.
func (c *campaign) given() int {
	n := 0
	for _, events := range c.leftOut {
		n += len(events)
	}
	return n
}
