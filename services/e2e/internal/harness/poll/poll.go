// Package poll waits for what can only be asked: the state of other processes
// and servers.
package poll

import (
	"context"
	"fmt"
	"time"
)

// interval is how often a state is asked for: short against anything worth
// measuring here, long against the cost of asking.
const interval = 20 * time.Millisecond

// Until asks until the answer is yes. When ctx ends first, the error names what
// was awaited and what was last seen; seen may be empty.
func Until(ctx context.Context, what string, ask func(context.Context) (yes bool, seen string)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		yes, seen := ask(ctx)
		if yes {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (last seen: %s)", what, context.Cause(ctx), seen)
		case <-tick.C:
		}
	}
}
