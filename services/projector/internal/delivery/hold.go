package delivery

import (
	"context"
	"errors"
	"strconv"

	"changerelay/services/projector/internal/session"
)

// hold takes the messages of one hold through the stages, one call at a time.
type hold struct {
	*Handler
	aggregate string
	versions  *versions
	guard     guard
	skips     *skips
	stages    [5]stage
	verdicts  verdicts
	parker    parker
}

// stage is one that a batch goes through, as far as something of it goes on.
type stage interface {
	take(ctx context.Context, b *batch)
}

// Hold implements session.Handler.
func (h *Handler) Hold(sessionID string) session.Applier {
	by := h.config.Process + "/" + strconv.FormatInt(h.holds.Add(1), 10)
	v := &versions{store: h.deps.Versions, aggregate: sessionID}
	one := &hold{
		Handler: h, aggregate: sessionID, versions: v,
		guard:    guard{notes: h.deps.CrashNotes, limit: h.config.CrashLimit, trial: h.trial},
		verdicts: verdicts{versions: v, counts: &h.counts, observer: h.deps.Observer, log: h.deps.Log},
	}
	skips := &skips{policed: h.deps.Policed, brake: h.deps.Brake}
	var decider decides = h.deps.Decider
	if h.deps.Policed != nil {
		decider = h.deps.Policed
	}
	one.skips = skips
	one.parker = parker{verdicts: &one.verdicts, versions: v, deps: &h.deps}
	one.stages = [...]stage{
		&one.guard,
		&decoder{filling: h.deps.Filling, tracer: h.deps.Tracer},
		&screen{halts: h.deps.Halts, versions: v, skips: skips, wait: h.config.GapWait},
		&projector{decider: decider, filling: h.deps.Filling, skips: skips, by: by},
		&writer{store: h.deps.Store, observer: h.deps.Observer, lasting: &h.lasting, versions: v, skips: skips, mending: mending{records: h.deps.Records, aggregate: sessionID}},
	}
	return one
}

// Apply implements session.Applier.
func (h *hold) Apply(ctx context.Context, messages []session.Message) (verdicts []session.Verdict, err error) {
	var places []int
	if h.versions.on() {
		messages, places = byVersion(messages)
	}
	h.skips.begin()
	// An operator may lift the halt under which messages are being parked: then what
	// is left is applied.
	for len(verdicts) < len(messages) && (err == nil || errors.Is(err, ErrLifted) && ctx.Err() == nil) {
		b := h.next(messages[len(verdicts):])
		h.walk(ctx, b)
		verdicts, err = append(verdicts, b.verdicts...), b.err
	}
	return inPlace(verdicts, places), err
}

// next is the batch of what comes first: messages that are resent for others, which
// have their verdicts, or those up to the next one that is. What is suspected goes
// one by one, so that the right one is blamed.
func (h *hold) next(messages []session.Message) *batch {
	n, ours := 1, h.forUs(&messages[0])
	for n < len(messages) && h.forUs(&messages[n]) == ours {
		n++
	}
	b := &batch{aggregate: h.aggregate}
	switch {
	case !ours:
		b.verdicts = make([]session.Verdict, n)
		h.counts.Repeated.Add(int64(n))
	case h.lasting.suspected(h.aggregate):
		b.fill(messages[:1])
	default:
		b.fill(messages[:n])
	}
	return b
}

// walk takes a batch one way: through the stages as far as it goes on, and then to
// the verdicts, where every batch ends, however it does.
func (h *hold) walk(ctx context.Context, b *batch) {
	for _, s := range h.stages {
		if b.end > 0 {
			s.take(ctx, b)
		}
	}
	h.verdicts.give(b)
	h.parker.park(ctx, b)
	b.untrace(b.err)
	h.guard.clear(ctx, b)
}
