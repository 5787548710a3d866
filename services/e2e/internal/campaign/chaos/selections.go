package chaos

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/orders"
)

// written is what there is of events by which resends select them. Its methods are safe for
// concurrent use.
type written struct {
	mu sync.Mutex
	of map[validate.Event]facts // guarded by mu
}

// facts are an event's type, and the time that it names.
type facts struct {
	kind string
	at   time.Time
}

// add notes events that were written.
func (w *written) add(events []orders.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = make(map[validate.Event]facts)
	}
	for _, e := range events {
		w.of[validate.Event{Aggregate: e.Aggregate, Version: e.Version}] = facts{kind: e.Type, at: e.Time}
	}
}

// facts are those of an event; none of one that was not written.
func (w *written) facts(e validate.Event) facts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of[e]
}

// wrote notes events that the source acknowledged.
func (c *campaign) wrote(events []orders.Event) {
	if c.repairs != nil {
		c.repairs.written.add(events)
	}
	c.witness.Ledger.Wrote(events)
}

// selection draws what is sent again, and says which events that are.
func (c *campaign) selection(rng *rand.Rand) (args []string, selects func(validate.Event) bool) {
	switch rng.IntN(4) {
	case 0:
		return []string{"--all"}, everything
	case 1:
		return []string{"--where", fmt.Sprintf(`{"type":%q}`, orders.Paid)}, func(e validate.Event) bool {
			return c.repairs.written.facts(e).kind == orders.Paid
		}
	case 2:
		// By the time that events name (HEAL_FIELD), which for some is long ago.
		since := time.Now().Add(-time.Duration(rng.Float64() * float64(time.Since(c.began)))).Truncate(time.Second)
		return []string{"--since", since.UTC().Format(time.RFC3339)}, func(e validate.Event) bool {
			return !c.repairs.written.facts(e).at.Before(since)
		}
	}
	chosen := make(map[string]bool)
	for _, id := range c.witness.Ledger.Some(rng, 3) {
		args, chosen[id] = append(args, "--aggregate", id), true
	}
	if args == nil {
		return []string{"--all"}, everything
	}
	return args, func(e validate.Event) bool { return chosen[e.Aggregate] }
}

// everything selects all that there is.
func everything(validate.Event) bool { return true }
