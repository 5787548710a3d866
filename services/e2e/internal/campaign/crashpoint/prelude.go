package crashpoint

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/harness/cluster"
)

// prelude brings the step about. What it ended is started again by resume,
// unless that is the victim.
func (c *campaign) prelude(ctx context.Context, p Prelude) (resume func(victim *cluster.Node) error, err error) {
	nothing := func(*cluster.Node) error { return nil }
	switch p {
	case NewTerm, Handover:
		leader, _, err := c.cluster.AwaitLeader(ctx, 0)
		if err != nil {
			return nil, err
		}
		if p == Handover {
			err = leader.Terminate()
		} else {
			c.killNode(leader)
		}
		return func(victim *cluster.Node) error {
			if victim == leader {
				return nil
			}
			if p == Handover { // another one has given up a partition just then
				c.killNode(leader)
			}
			return leader.Start()
		}, err
	case Unmappable:
		return nothing, c.writeOdd(ctx, 5)
	case Resending:
		return nothing, c.resend(ctx)
	case Work:
	}
	return nothing, nil
}

// writeOdd writes documents that are no events: they name no aggregate, and a number
// that no id can be.
func (c *campaign) writeOdd(ctx context.Context, n int) error {
	names := c.cluster.Names()
	for range n {
		c.odd++
		_, err := c.witness.Client.Database(names.SourceDatabase).Collection(names.SourceCollection).
			InsertOne(ctx, bson.D{{Key: "_id", Value: float64(c.odd) + 0.5}, {Key: "type", Value: "Odd"}})
		if err != nil {
			return fmt.Errorf("write a document that is no event: %w", err)
		}
	}
	return nil
}
