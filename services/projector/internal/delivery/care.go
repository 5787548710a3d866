package delivery

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"changerelay/services/projector/internal/session"
)

// Care remembers what processes were about to do when they died. The broker
// does not: the messages of a dead process come again as if they were new.
type Care interface {
	// Careful tells whether a process has died lately. Only then is it worth
	// while to write down what is about to be done.
	Careful() bool
	// Suspects are the aggregate's messages that processes had in hand when they
	// died, and how many did.
	Suspects(ctx context.Context, aggregate string) (map[string]int, error)
	// Note notes that this process is about to apply the aggregate's message, or
	// a batch that begins with it; Clear that it has done so and lives.
	Note(ctx context.Context, aggregate, messageID string) error
	Clear(ctx context.Context, aggregate, messageID string) error
}

// careful is a handler's use of Care.
type careful struct {
	care  Care
	limit int
	// suspects lets one message at a time through that processes died of, so
	// that the next death tells which one it is.
	suspects sync.Mutex
}

// WithCare has the handler park a message that limit processes died of while
// they applied it. It is for before the first use.
func (h *Handler) WithCare(care Care, limit int) *Handler {
	h.careful.care, h.careful.limit = care, limit
	return h
}

// applyCarefully applies the first messages: all of them in good times; after a
// death what is about to be done is noted before. An aggregate of which a
// process has died goes message by message, and no other such one beside it.
func (h *hold) applyCarefully(ctx context.Context, messages []session.Message) ([]session.Verdict, error) {
	c := &h.careful
	if c.care == nil || !c.care.Careful() {
		return h.apply(ctx, messages, "")
	}
	suspects, err := c.care.Suspects(ctx, h.aggregate)
	if err != nil {
		return nil, err
	}
	first := messages[0].ID
	if died := suspects[first]; died >= c.limit {
		verdicts, err := h.apply(ctx, messages[:1], fmt.Sprintf("%d processes have died while they applied it", died))
		if err != nil {
			return verdicts, err
		}
		return verdicts, c.care.Clear(ctx, h.aggregate, first)
	}
	if len(suspects) > 0 {
		c.suspects.Lock()
		defer c.suspects.Unlock()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		messages = messages[:1]
	}
	if err := c.care.Note(ctx, h.aggregate, first); err != nil {
		return nil, err
	}
	verdicts, err := h.apply(ctx, messages, "")
	return verdicts, errors.Join(err, c.care.Clear(ctx, h.aggregate, first))
}
