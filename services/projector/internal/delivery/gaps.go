package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/session"
)

// Versions keeps up to which version each aggregate's events were dealt with.
type Versions interface {
	// LastVersion is an aggregate's version; unknown before its first event.
	LastVersion(ctx context.Context, aggregate string) (contract.Version, error)
	// AdvanceVersion moves it up to a version. A lower one changes nothing.
	AdvanceVersion(ctx context.Context, aggregate string, version int64) error
	// ForgetVersion has whatever event comes next count as the first.
	ForgetVersion(ctx context.Context, aggregate string) error
}

// gaps is a handler's use of Versions.
type gaps struct {
	versions Versions
	parked   ParkedMessages
	wait     time.Duration
}

func (g *gaps) on() bool { return g.versions != nil }

// waits tells whether a message behind a gap is still to be tried again.
func (g *gaps) waits(m *session.Message) bool { return time.Since(m.EnqueuedAt) < g.wait }

// links is how far an aggregate's versions follow each other.
type links struct {
	aggregate string
	versions  Versions
	reached   contract.Version
}

// lookUp reads how far they do.
func lookUp(ctx context.Context, versions Versions, aggregate string) (*links, error) {
	reached, err := versions.LastVersion(ctx, aggregate)
	if err != nil {
		return nil, fmt.Errorf("look up the version of aggregate %q: %w", aggregate, err)
	}
	return &links{aggregate, versions, reached}, nil
}

// missing says which versions are missing between one event and the next, or nothing.
func missing(last, next contract.Version) string {
	if !last.Known || !next.Known || next.Number <= last.Number+1 {
		return ""
	}
	return fmt.Sprintf("version gap: version %d follows %d", next.Number, last.Number)
}

// reach notes that events up to a version were dealt with.
func (l *links) reach(ctx context.Context, version contract.Version) error {
	if !version.Known || l.reached.Known && version.Number <= l.reached.Number {
		return nil
	}
	if err := l.versions.AdvanceVersion(ctx, l.aggregate, version.Number); err != nil {
		return fmt.Errorf("note the version of aggregate %q: %w", l.aggregate, err)
	}
	l.reached = version
	return nil
}

// follows is how many of the batch's first items follow each other and what was
// dealt with before, and what is missing before the next. What is missing is looked up
// again: a redrive may have applied it since the hold knew.
func (h *hold) follows(ctx context.Context, b *batch) (n int, gap string, err error) {
	if !h.gaps.on() {
		return len(b.items), "", nil
	}
	if h.links != nil {
		if n, gap = h.links.follow(b); gap == "" {
			return n, "", nil
		}
	}
	if h.links, err = lookUp(ctx, h.gaps.versions, h.aggregate); err != nil {
		return 0, "", err
	}
	n, gap = h.links.follow(b)
	return n, gap, nil
}

// follow is how many of a batch's first items follow, and what is missing before the
// next.
func (l *links) follow(b *batch) (n int, gap string) {
	last := l.reached
	for i := range b.items {
		if b.items[i].event == nil || b.items[i].fills {
			continue
		}
		next := b.items[i].event.Version
		if gap := missing(last, next); gap != "" {
			return i, gap
		}
		last = later(last, next)
	}
	return len(b.items), ""
}

func later(a, b contract.Version) contract.Version {
	if b.Known && (!a.Known || b.Number > a.Number) {
		return b
	}
	return a
}

// reach notes that the first n items were dealt with. They are stored by now, and
// not settled yet: a version that is noted is never missing.
func (h *hold) reach(ctx context.Context, b *batch, n int) error {
	if !h.gaps.on() {
		return nil
	}
	var last contract.Version
	for i := range n {
		if b.items[i].event != nil && !b.items[i].fills {
			last = later(last, b.items[i].event.Version)
		}
	}
	return h.links.reach(ctx, last)
}

// byVersion returns messages in the order of their versions, and the place each
// had; nil where they are in order already, or not all of them have one.
func byVersion(messages []session.Message) (ordered []session.Message, places []int) {
	versions := make([]int64, len(messages))
	for i := range messages {
		version := contract.MessageVersion(messages[i].Message)
		if !version.Known {
			return messages, nil
		}
		versions[i] = version.Number
	}
	if slices.IsSorted(versions) {
		return messages, nil
	}
	places = make([]int, len(messages))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(versions[a], versions[b]) })
	ordered = make([]session.Message, len(messages))
	for i, place := range places {
		ordered[i] = messages[place]
	}
	return ordered, places
}

// inPlace puts verdicts over ordered messages in the order in which those came:
// as many as there are from the first on.
func inPlace(verdicts []session.Verdict, places []int) []session.Verdict {
	if places == nil {
		return verdicts
	}
	came := make([]session.Verdict, len(places))
	done := make([]bool, len(places))
	for i := range verdicts {
		came[places[i]], done[places[i]] = verdicts[i], true
	}
	if undone := slices.Index(done, false); undone >= 0 {
		return came[:undone]
	}
	return came
}

// parkAll parks a batch of a halted aggregate. With the version that was missing
// what is parked follows, and is applied. Nothing is done before that is done: a
// parked message that is settled is looked at no more.
func (h *hold) parkAll(ctx context.Context, b *batch) ([]session.Verdict, error) {
	verdicts, err := h.park(ctx, b, 0, "an earlier event of the aggregate is parked", false)
	switch {
	case !h.gaps.on() || errors.Is(err, ErrLifted):
		return verdicts, err
	case err != nil:
		return nil, err
	}
	links, err := lookUp(ctx, h.gaps.versions, h.aggregate)
	if err != nil {
		return nil, err
	}
	if !links.closedBy(b) {
		return verdicts, nil
	}
	done, err := Redrive(ctx, h.decider, h.store, h.gaps.parked, Gaps{Versions: h.gaps.versions, Filling: h.filling}, h.aggregate)
	if err != nil {
		return nil, err
	}
	h.log.Info().Str("aggregate_id", h.aggregate).Int("applied", done.Applied).Bool("lifted", done.Lifted).
		Str("reason", done.Reason).Msg("a missing version has come, what was parked is applied")
	return verdicts, nil
}

// closedBy tells whether a batch has the version that comes next, or one that
// came before: then what follows may have been left parked by one that failed.
func (l *links) closedBy(b *batch) bool {
	return slices.ContainsFunc(b.items, func(it item) bool {
		return it.event != nil && !it.fills && it.event.Version.Known && l.reached.Known && it.event.Version.Number <= l.reached.Number+1
	})
}
