package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"changerelay/services/projector/internal/session"
)

// Care remembers what processes were about to do when they died. The broker
// does not: the messages of a dead process come again as if they were new.
// Messages go by their ids.
type Care interface {
	// Careful tells whether a process has died lately. Only then is it worth
	// while to write down what is about to be done.
	Careful() bool
	// Deaths are the batches of the aggregate that processes had in hand when they
	// died, each without the messages that were dealt with since.
	Deaths(ctx context.Context, aggregate string) ([][]string, error)
	// Note notes that this process is about to apply these messages of the
	// aggregate, and nothing else of it.
	Note(ctx context.Context, aggregate string, messages []string) error
	// Clear notes that this process lives and has none of the aggregate in hand,
	// and that these messages are dealt with: no process has died of them.
	Clear(ctx context.Context, aggregate string, done []string) error
}

// careful is a handler's use of Care.
type careful struct {
	care  Care
	limit int
	// suspects holds the place for the one batch that may be of those which
	// processes died of, so that the next death tells which one it is.
	suspects chan struct{}
}

// applyCarefully applies the first messages: all of them in good times; after a
// death what is about to be done is noted before. An aggregate of which a process
// has died goes message by message, and no other such one beside it.
func (h *hold) applyCarefully(ctx context.Context, messages []session.Message) ([]session.Verdict, error) {
	c := &h.careful
	if c.care == nil || !c.care.Careful() {
		return h.apply(ctx, messages, "")
	}
	deaths, err := c.care.Deaths(ctx, h.aggregate)
	if err != nil {
		return nil, err
	}
	part, deadly := c.part(messages, deaths)
	if len(deaths) > 0 {
		select {
		case c.suspects <- struct{}{}:
			defer func() { <-c.suspects }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if deadly == "" {
		if err := c.care.Note(ctx, h.aggregate, ids(part)); err != nil {
			return nil, err
		}
	}
	verdicts, err := h.apply(ctx, part, deadly)
	return verdicts, errors.Join(err, c.care.Clear(ctx, h.aggregate, ids(part[:len(verdicts)])))
}

// part is which of the first messages are tried together: the first alone while
// any of them is suspected. So what is dealt with leaves the deaths, and the next
// death names its message. One that a process has died of alone, and enough
// processes had in hand, is not tried but parked; deadly says so.
func (c *careful) part(messages []session.Message, deaths [][]string) (part []session.Message, deadly string) {
	n, died, alone := len(messages), 0, false
	for _, batch := range deaths {
		if !slices.ContainsFunc(messages, func(m session.Message) bool { return slices.Contains(batch, m.ID) }) {
			continue
		}
		n = 1
		if slices.Contains(batch, messages[0].ID) {
			died++
			alone = alone || len(batch) == 1
		}
	}
	if alone && died >= c.limit {
		return messages[:1], fmt.Sprintf("%d processes have died while they applied it", died)
	}
	return messages[:n], ""
}

func ids(messages []session.Message) []string {
	all := make([]string, len(messages))
	for i := range messages {
		all[i] = messages[i].ID
	}
	return all
}
