package chaos

import (
	"context"
	"fmt"
	"time"

	"changerelay/services/e2e/internal/harness/cluster"
)

// signalled is the exit status of a process that a signal has ended.
const signalled = -1

// ask asks a service to stop. ended waits for its end, and notes one that is not in
// good order, with status 0.
func (c *campaign) ask(n *cluster.Node) (ended func(context.Context) error, err error) {
	_, notUp := n.Page() // until it is up, it may not know the signal yet
	if err := n.Terminate(); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		status, err := n.Wait(ctx)
		if err == nil && status != 0 && (status != signalled || notUp == nil) {
			c.endedBy(n, fmt.Sprintf("ended with status %d after SIGTERM", status))
		}
		return err
	}, nil
}

// halt stops a service in good order, or kills it where that takes too long.
func (c *campaign) halt(ctx context.Context, n *cluster.Node) error {
	if !n.Running() {
		c.endedBy(n, "ended by itself")
		return nil
	}
	ended, err := c.ask(n)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	if err := ended(waiting); err != nil {
		n.Kill()
		c.mu.Lock()
		c.killed = time.Now()
		c.mu.Unlock()
	}
	return ctx.Err()
}

// endedBy notes a process that has ended, and not as a fault has it.
func (c *campaign) endedBy(n *cluster.Node, how string) {
	c.mu.Lock()
	c.vanished = append(c.vanished, fmt.Sprintf("%s %s: see %s", n.Name, how, n.LogPath()))
	c.mu.Unlock()
	c.say("%s %s", n.Name, how)
}

// vanish notes a process that ended by itself, and starts it again.
func (c *campaign) vanish(n *cluster.Node) error {
	c.endedBy(n, "ended by itself")
	if err := n.Start(); err != nil {
		return err
	}
	return errNobody
}
