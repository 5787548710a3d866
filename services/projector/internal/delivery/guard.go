package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// CrashNotes remember what processes were about to do when they died. The broker
// does not: the messages of a dead process come again as if they were new.
// Messages are known by their ids.
type CrashNotes interface {
	// CrashedLately tells whether a process has died lately. Only then is it worth
	// while to write down what is about to be done.
	CrashedLately() bool
	// Deaths are what processes had in hand of the aggregate when they died, each without
	// the messages that were dealt with since.
	Deaths(ctx context.Context, aggregate string) ([]Death, error)
	// Note notes that this process is about to apply these messages of the
	// aggregate, and nothing else of it; alone is that of Death.
	Note(ctx context.Context, aggregate string, messages []string, alone bool) error
	// Clear notes that this process lives and has none of the aggregate in hand,
	// and that these messages are dealt with: no process has died of them.
	Clear(ctx context.Context, aggregate string, done []string) error
}

// Death is what a process had in hand of an aggregate when it died.
type Death struct {
	Messages []string
	// Alone tells that the process was trying a suspected message by itself, and had no
	// other suspect in hand.
	Alone bool
}

// guard is the stage that keeps a message from killing one process after another. After
// a death it notes what is about to be done, which is why it comes before all else: a
// process may die of reading a message. An aggregate of which a process has died goes
// message by message, and no other such one beside it.
type guard struct {
	notes CrashNotes
	limit int
	// trial holds the place for the one batch that may be of those which
	// processes died of, so that the next death tells which one it is.
	trial chan struct{}
	// alone tells that this hold has that place, and noted that what is dealt with is to
	// be cleared.
	alone, noted bool
}

func (g *guard) take(ctx context.Context, b *batch) {
	if g.notes != nil && g.notes.CrashedLately() {
		g.note(ctx, b)
	}
}

// note notes what is about to be done, or that the first message is not tried.
func (g *guard) note(ctx context.Context, b *batch) {
	deaths, err := g.notes.Deaths(ctx, b.aggregate)
	if len(deaths) > 0 {
		select {
		case g.trial <- struct{}{}:
			g.alone = true
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if g.part(b, deaths); err == nil && b.deadly == "" {
		err = g.notes.Note(ctx, b.aggregate, ids(b.items), g.alone && len(b.items) == 1)
	}
	if g.noted = err == nil; err != nil {
		b.fail(0, err)
	}
}

// part leaves those messages in the batch that are tried together: the first alone while
// any of them is suspected. So what is dealt with leaves the deaths, and the next
// death names its message. One that enough processes had in hand, all but one of them
// alone, is not tried but parked; deadly says so. That a process was killed with it in a
// batch says little, even if all others of that have been dealt with: it may have been
// killed for something else, and a message has its turn again and again while nothing can
// be stored.
func (g *guard) part(b *batch, deaths []Death) {
	messages, n, died, alone := ids(b.items), len(b.items), 0, 0
	for _, death := range deaths {
		if slices.ContainsFunc(messages, func(id string) bool { return slices.Contains(death.Messages, id) }) {
			n = 1
		}
		if slices.Contains(death.Messages, messages[0]) {
			died++
			if death.Alone {
				alone++
			}
		}
	}
	if died >= g.limit && alone >= max(1, g.limit-1) {
		n, b.deadly = 1, fmt.Sprintf("%d processes have died while they applied it", died)
	}
	b.cut(n)
}

// clear notes what was dealt with, once the batch has its verdicts.
func (g *guard) clear(ctx context.Context, b *batch) {
	if g.noted {
		b.err = errors.Join(b.err, g.notes.Clear(ctx, b.aggregate, ids(b.items[:len(b.verdicts)])))
	}
	if g.alone {
		<-g.trial
	}
	g.noted, g.alone = false, false
}

func ids(items []item) []string {
	all := make([]string, len(items))
	for i := range items {
		all[i] = items[i].message.ID
	}
	return all
}
