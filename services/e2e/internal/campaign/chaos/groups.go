package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/campaign/modes"
	"changerelay/services/e2e/internal/harness/cluster"
)

const (
	// owners is where the projectors note whose collections and subscriptions are.
	owners = "collection_owners"
	// elsewhere is the subscription that the projectors are moved to, besideSub that of
	// another group. Each has every message from the beginning.
	elsewhere = "elsewhere"
	besideSub = modes.Beside
	beside    = modes.Beside
)

// noted matches what is noted of collections beside whose they are: by any projector that
// runs, whenever it comes to that.
var noted = bson.Regex{Pattern: `^\$(seen|shape):`}

// ownership is a look at whose collections and subscriptions are.
func (c *campaign) ownership(ctx context.Context) (string, error) {
	var all []struct {
		ID    string  `bson:"_id"`
		Group *string `bson:"group"`
	}
	cursor, err := c.witness.ReadModel().Collection(owners).Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$not", Value: noted}}}})
	if err == nil {
		err = cursor.All(ctx, &all)
	}
	var text strings.Builder
	for _, o := range all {
		group := "nobody"
		if o.Group != nil {
			group = fmt.Sprintf("%q", *o.Group)
		}
		fmt.Fprintf(&text, "%s of %s; ", o.ID, group)
	}
	return text.String(), err
}

// moveProjectors moves the projectors to another subscription under load, and back.
// While they run that is refused.
func moveProjectors(ctx context.Context, c *campaign, _ *rand.Rand) (string, func(context.Context) error, error) {
	release, free := c.take("projectors")
	if !free {
		return "", nil, errNobody
	}
	there := "SERVICEBUS_SUBSCRIPTION=" + elsewhere
	if err := c.mustRefuse(ctx, c.cluster.Projectors[0], []string{there}, c.ownership, "move"); err != nil {
		release()
		return "", nil, err
	}
	c.witness.MayMove(elsewhere)
	if err := c.move(ctx, there); err != nil {
		release()
		return "", nil, err
	}
	return "projectors moved to another subscription", func(ctx context.Context) error { defer release(); return c.move(ctx) }, nil
}

// move stops the projectors, moves their group, and starts them there. What they leave
// behind the other subscription has, too.
func (c *campaign) move(ctx context.Context, env ...string) error {
	for _, n := range c.cluster.Projectors {
		if err := c.halt(ctx, n); err != nil {
			return err
		}
	}
	if output, err := c.moveStopped(ctx, c.cluster.Projectors[0], killedBefore, env); err != nil {
		c.wrong("move with %q, and all projectors stopped: %s", env, firstLine(output))
		env = nil
	}
	for _, n := range c.cluster.Projectors {
		if err := n.StartAs(n.Binary(), env...); err != nil {
			return err
		}
	}
	return nil
}

// besideDeployment is a projector of another group, on a subscription, with a read
// model of its own.
func (c *campaign) besideDeployment(subscription string) (*cluster.Node, error) {
	return modes.BesideDeployment(c.cluster, c.besideFile, subscription)
}

// layOutBeside adds a projector of another group, which suffers what the others do. It
// is judged by itself.
func (c *campaign) layOutBeside(ctx context.Context) error {
	n, err := c.besideDeployment(besideSub)
	if err != nil {
		return err
	}
	c.cluster.Projectors = append(c.cluster.Projectors, n)
	c.witness.AwaitBeside(besideSub)
	return c.witness.JudgeBeside(ctx, beside)
}

// shareSubscription starts a projector of another group on the subscription of the
// first one. It must end by itself, and change nothing.
func shareSubscription(ctx context.Context, c *campaign, _ *rand.Rand) (string, func(context.Context) error, error) {
	release, free := c.take("projectors") // a subscription that is moved away from is anybody's
	if !free {
		return "", nil, errNobody
	}
	defer release()
	n, err := c.besideDeployment(c.cluster.Names().Subscription)
	if err != nil {
		return "", nil, err
	}
	before, err := c.ownership(ctx)
	if err == nil {
		err = n.Start()
	}
	if err != nil {
		return "", nil, err
	}
	defer n.Kill()
	ending, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	if status, err := n.Wait(ending); err != nil || status != refused {
		c.wrong("a second group on one subscription: got status %d, %v, want %d", status, err, refused)
	}
	after, err := c.ownership(ctx)
	if before != after {
		c.wrong("a second group that was refused has changed %s to %s", before, after)
	}
	return "a second group on one subscription: refused", nil, err
}

// startBeside starts a projector of another group on a subscription of its own. What
// it makes of it is judged at the end.
func startBeside(ctx context.Context, c *campaign, _ *rand.Rand) (string, func(context.Context) error, error) {
	release, free := c.take(beside)
	if !free {
		return "", nil, errNobody
	}
	n, err := c.besideDeployment(besideSub)
	if err == nil {
		err = c.witness.JudgeBeside(ctx, beside)
	}
	if err == nil {
		err = n.Start()
	}
	if err != nil {
		release()
		return "", nil, err
	}
	return "a second group on a subscription of its own", func(ctx context.Context) error {
		defer release()
		return c.halt(ctx, n)
	}, nil
}

// drainBeside has the other group, if there was one, apply the rest of what it has.
func (c *campaign) drainBeside(ctx context.Context) error {
	c.mu.Lock()
	done := c.done[groupBeside] > 0
	c.mu.Unlock()
	if !done {
		return nil
	}
	n, err := c.besideDeployment(besideSub)
	if err == nil {
		err = n.Start()
	}
	if err != nil {
		return err
	}
	defer n.Kill()
	c.witness.AwaitBeside(besideSub)
	for range remedies {
		if err := c.witness.AwaitStill(ctx, time.Second); err != nil {
			return err
		}
		if !c.giveUpEarly(ctx, n, halts+"."+beside) {
			return c.halt(ctx, n)
		}
	}
	return fmt.Errorf("aggregates of another group are halted after %d remedies", remedies)
}

// groupBeside is the mistake that is none.
const groupBeside = "operator: a second group on a subscription of its own"
