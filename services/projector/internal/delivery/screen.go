package delivery

import (
	"context"
	"fmt"
	"time"

	"changerelay/services/projector/internal/session"
)

// screen is the stage that lets on what is in its turn: nothing of a halted aggregate,
// nothing that processes have died of, and nothing behind a missing version.
type screen struct {
	halts    *Halts
	versions *versions
	skips    *skips
	// wait is for how long messages behind a missing version wait for it.
	wait time.Duration
}

func (s *screen) take(ctx context.Context, b *batch) {
	halted, err := s.halts.Halted(ctx, b.aggregate)
	switch {
	case err != nil:
		b.fail(0, fmt.Errorf("look up whether aggregate %q is halted: %w", b.aggregate, err))
	case halted:
		b.stop(0, behind, "the aggregate is halted")
	case b.deadly != "" && b.items[0].event != nil:
		if b.items[0].skipped = s.skips.deadly(b); b.items[0].skipped != nil {
			s.follow(ctx, b)
		}
	default:
		s.follow(ctx, b)
	}
}

// follow ends the batch before a gap.
func (s *screen) follow(ctx context.Context, b *batch) {
	n, gap, err := s.versions.follow(ctx, b.items)
	switch {
	case err != nil:
		b.fail(0, err)
	case gap == "":
	case time.Since(b.items[n].message.EnqueuedAt) < s.wait:
		b.fail(n, fmt.Errorf("apply aggregate %q: %s: %w", b.aggregate, gap, session.ErrNotYet))
	default:
		b.stop(n, gapped, gap)
	}
}
