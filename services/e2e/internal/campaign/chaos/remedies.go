package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/poll"
)

// putRight does what the documentation says about an order of which something is set
// aside, and says whether it is dealt with. What cannot be done now is done at the end.
func (c *campaign) putRight(ctx context.Context, n *cluster.Node, o *odd) bool {
	if o.unsent {
		return c.purge(ctx, n, o)
	}
	for range remedies {
		for _, a := range c.messages(ctx, n, o) {
			if a.Failed && a.Version == wrongVersion {
				c.discard(ctx, n, o, a.EventID)
			}
		}
		output, err := c.redrive(ctx, n, o)
		if err == nil || strings.Contains(output, "is not halted") {
			c.isClosed(o)
			return true
		}
		c.say("%s: %s", o.aggregate, firstLine(output))
	}
	return false
}

// redrive redrives an order, and goes on over what is lost where it has to be told to.
func (c *campaign) redrive(ctx context.Context, n *cluster.Node, o *odd) (output string, err error) {
	output, err = n.CommandIn(ctx, nil, "parked", "redrive", o.aggregate)
	if err != nil && strings.Contains(output, acceptLost) {
		for _, a := range c.messages(ctx, n, o) {
			c.giveUp(ownGroup, o.aggregate, a.Version, witness.Leaving{}) // where it was overtaken
		}
		output, err = n.CommandIn(ctx, nil, "parked", "redrive", o.aggregate, acceptLost)
	}
	return output, err
}

// acceptLost goes on over what was lost, where a redrive names it.
const acceptLost = "--accept-lost"

// purgeChanges gives a parked change up, and removes it, while traffic flows.
func purgeChanges(ctx context.Context, c *campaign, rng *rand.Rand) (string, func(context.Context) error, error) {
	n := publisher(ctx, c, rng)
	o, err := c.writeOdd(ctx, true)
	if err != nil {
		return "", nil, err
	}
	if !c.awaitAside(ctx, o) || !c.purge(ctx, n, o) {
		return "", nil, errNobody // it is dealt with at the end
	}
	return "a parked change of " + o.aggregate + " discarded and purged", nil, c.goOn(ctx, o, 1)
}

// purge discards what is parked of an order that cannot be sent, and removes it from
// the state database. It says whether that is done.
func (c *campaign) purge(ctx context.Context, n *cluster.Node, o *odd) bool {
	output, err := n.CommandIn(ctx, nil, "parked", "list", "--all")
	if err != nil {
		c.say("%s: %s", o.aggregate, firstLine(output))
		return false
	}
	for _, a := range c.asidesIn(output) {
		if whole, err := n.CommandIn(ctx, nil, "parked", "show", a.ID); err == nil && strings.Contains(whole, fmt.Sprintf("%q", o.aggregate)) {
			c.giveUpChange(o, a.ID)
			_, _ = n.CommandIn(ctx, nil, "parked", "discard", a.ID) // it may be discarded already
		}
	}
	if err := c.awaitPurge(ctx, n, o); err != nil {
		c.say("%s: %v", o.aggregate, err)
		return false
	}
	c.isClosed(o)
	return true
}

// awaitPurge removes what was discarded of an order. A purge counts whole seconds, so
// that what was discarded in the present one takes another purge.
func (c *campaign) awaitPurge(ctx context.Context, n *cluster.Node, o *odd) error {
	ctx, cancel := context.WithTimeout(ctx, asideTime)
	defer cancel()
	return poll.Until(ctx, "what was discarded to be purged", func(ctx context.Context) (bool, string) {
		output, failed := n.CommandIn(ctx, nil, "parked", "purge", "--older-than", "1ns")
		left, err := c.witness.State().Collection(parkedChanges).CountDocuments(ctx, c.changeOf(o))
		return err == nil && failed == nil && left == 0, fmt.Sprintf("%d left, error %v, %s", left, err, firstLine(output))
	})
}

// putAllRight deals with what is still set aside, of whatever order: what was sent
// again may have been set aside again. It says whether there was anything.
func (c *campaign) putAllRight(ctx context.Context) bool {
	early := c.giveUpEarly(ctx, c.cluster.Projectors[0], halts)
	others := c.redriveOthers(ctx, c.cluster.Projectors[0])
	open := c.opened()
	c.mu.Lock()
	all := slices.Clone(c.odd)
	c.mu.Unlock()
	for _, o := range all {
		if !slices.Contains(open, o) && c.isAside(ctx, o) {
			open = append(open, o)
		}
	}
	for _, o := range open {
		n := c.cluster.Projectors[0]
		if o.unsent {
			n = c.cluster.Publishers[0]
		}
		c.remedied("remedy, of what is set aside", "what is set aside of "+o.aggregate+" is dealt with", fmt.Sprintf("done: %t", c.putRight(ctx, n, o)))
	}
	return early || others || len(open) > 0
}

// beganLater matches the reason of a halt for an event from before the one with which its
// aggregate began in the read model, and the version of that one: the stream was set back
// to before it, after it had passed over what was written until then.
var beganLater = regexp.MustCompile(`did not begin with the aggregate: .* at sequence ([0-9]+), and this event`)

// giveUpEarly discards what came from before the beginning of its aggregate and halts it,
// and redrives the rest. n is a projector of the group whose halts are in that
// collection. It says whether there was anything.
func (c *campaign) giveUpEarly(ctx context.Context, n *cluster.Node, halts string) bool {
	var all []struct {
		ID     string `bson:"_id"`
		Reason string `bson:"reason"`
	}
	cursor, err := c.witness.ReadModel().Collection(halts).Find(ctx, bson.D{{Key: "reason", Value: bson.Regex{Pattern: beganLater.String()}}})
	if err == nil {
		err = cursor.All(ctx, &all)
	}
	if err != nil {
		c.say("look for halts: %v", err)
	}
	for _, h := range all {
		began, _ := strconv.ParseInt(beganLater.FindStringSubmatch(h.Reason)[1], 10, 64)
		o := &odd{aggregate: h.ID}
		for _, a := range c.messages(ctx, n, o) {
			if a.Version < began {
				c.discard(ctx, n, o, a.EventID)
			}
		}
		output, err := n.CommandIn(ctx, nil, "parked", "redrive", h.ID)
		c.remedied("remedy, of what came early", fmt.Sprintf("events of %s from before its version %d, with which it began, are given up", h.ID, began), outcomeOf(output, err))
	}
	return len(all) > 0
}

// restoredHalt matches the reason of a halt that was deleted, and that a projector has put
// back: what the reason was before nobody knows.
var restoredHalt = regexp.MustCompile(`: it is put back$|, and is put back: `)

// redriveOthers redrives orders that are not odd, and whose halts somebody has deleted: they
// are halted anew for what still is not right. What was parked of them may be deleted, too.
// It says whether there was anything.
func (c *campaign) redriveOthers(ctx context.Context, n *cluster.Node) bool {
	var all []struct {
		ID string `bson:"_id"`
	}
	cursor, err := c.witness.ReadModel().Collection(halts).Find(ctx, bson.D{{Key: "reason", Value: bson.Regex{Pattern: restoredHalt.String()}}})
	if err == nil {
		err = cursor.All(ctx, &all)
	}
	if err != nil {
		c.say("look for halts: %v", err)
	}
	c.mu.Lock()
	known := make(map[string]bool, len(c.odd))
	for _, o := range c.odd {
		known[o.aggregate] = true
	}
	c.mu.Unlock()
	some := false
	for _, h := range all {
		if known[h.ID] {
			continue
		}
		some = true
		output, err := c.redrive(ctx, n, &odd{aggregate: h.ID})
		c.remedied("remedy, of a halt put back", "what is halted of "+h.ID+" is redriven", outcomeOf(output, err))
	}
	return some
}

// isAside says whether something of an order is set aside: a message may be parked
// whose halt was deleted and is not put back yet.
func (c *campaign) isAside(ctx context.Context, o *odd) bool {
	if o.unsent {
		n, err := c.witness.State().Collection(parkedChanges).CountDocuments(ctx, c.changeOf(o))
		return err == nil && n > 0
	}
	halted, err := c.witness.ReadModel().Collection(halts).CountDocuments(ctx, bson.D{{Key: "_id", Value: o.aggregate}})
	parked, failed := c.witness.ReadModel().Collection(parkedMessages).CountDocuments(ctx, bson.D{{Key: "_id.aggregateId", Value: o.aggregate}})
	return err == nil && failed == nil && halted+parked > 0
}
