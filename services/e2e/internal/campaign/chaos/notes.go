package chaos

import (
	"fmt"
	"time"

	"changerelay/services/e2e/internal/check/report"
)

// take reserves what a fault is done to; false when another one has it.
func (c *campaign) take(what string) (release func(), free bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken[what] {
		return nil, false
	}
	c.taken[what] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.taken, what)
	}, true
}

// note counts a fault.
func (c *campaign) note(kind, what, outcome string) { c.noteIn(&c.faults, kind, what, outcome) }

// remedied notes what was done about what faults have left, which is no fault.
func (c *campaign) remedied(kind, what, outcome string) { c.noteIn(&c.remedies, kind, what, outcome) }

func (c *campaign) noteIn(list *[]report.Fault, kind, what, outcome string) {
	c.mu.Lock()
	c.done[kind]++
	*list = append(*list, report.Fault{At: time.Since(c.began).Seconds(), Kind: kind, What: what, Outcome: outcome})
	c.mu.Unlock()
	c.say("%s, %s", what, outcome)
}

// say prints a line of the timeline.
func (c *campaign) say(format string, args ...any) {
	fmt.Fprintf(c.out, "%7.1fs  %s\n", time.Since(c.began).Seconds(), fmt.Sprintf(format, args...))
}
