package crashpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/poll"
)

const (
	// resends is where the publishers keep what is sent again.
	resends = "resends"
	// ofNobody is the group that it is for: projectors pass it by.
	ofNobody = "nobody"
	// mostResent is how many aggregates are sent again at once.
	mostResent = 20
)

// resent is what was asked for: aggregates, and when.
type resent struct {
	id string
	of map[string]bool
	at time.Time
}

// onResends runs the publisher's command about resends, and returns the state of each that
// it prints, by their ids. It does not go by the proxies: it is not what waits at a step.
func (c *campaign) onResends(ctx context.Context, args ...string) (map[string]string, error) {
	directly := []string{"MONGODB_URI=" + c.cluster.Endpoints().MongoURI}
	output, err := c.cluster.Publishers[0].CommandIn(ctx, directly, append([]string{"resend", "--json"}, args...)...)
	states := make(map[string]string)
	for line := range strings.Lines(output) {
		var said struct{ ID, State string }
		if json.Unmarshal([]byte(line), &said) == nil && said.ID != "" {
			states[said.ID] = said.State
		}
	}
	return states, err
}

// resend asks for some aggregates to be sent again, beside what was asked for before, which
// has to come to its end first.
func (c *campaign) resend(ctx context.Context) error {
	c.witness.MayResend(ofNobody)
	return poll.Until(ctx, "a resend to begin", func(ctx context.Context) (bool, string) {
		args := []string{"--group", ofNobody, "--rate", "0", "--why", "crash points"}
		asked := resent{of: make(map[string]bool), at: time.Now()}
		for _, id := range c.witness.Ledger.Some(c.rng, mostResent) {
			args, asked.of[id] = append(args, "--aggregate", id), true
		}
		if len(asked.of) == 0 {
			return false, "nothing is written yet"
		}
		said, err := c.onResends(ctx, args...)
		if err != nil {
			return false, fmt.Sprint(err)
		}
		for asked.id = range said {
			c.resends = append(c.resends, asked)
		}
		return len(said) == 1, fmt.Sprintf("it prints %v", said)
	})
}

// resentAll waits until all that was asked for is sent again, and has the witness look
// for each event of it.
func (c *campaign) resentAll(ctx context.Context) error {
	if len(c.resends) == 0 {
		return nil
	}
	err := poll.Until(ctx, "the resends to be done", func(ctx context.Context) (bool, string) {
		all, err := c.onResends(ctx, "status", "--all")
		done := err == nil
		for _, asked := range c.resends {
			done = done && all[asked.id] == "done"
		}
		return done, fmt.Sprintf("%v, error %v", all, err)
	})
	if err != nil {
		return err
	}
	for _, asked := range c.resends {
		c.witness.Resent(asked.id, ofNobody, asked.at, func(e validate.Event) bool { return asked.of[e.Aggregate] })
	}
	return nil
}
