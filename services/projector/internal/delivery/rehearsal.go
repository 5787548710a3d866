package delivery

import (
	"context"
	"fmt"
	"slices"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
)

// Gaps is how a redrive deals with what is missing. The zero Gaps passes over missing
// versions, and stops before an event of which a projection is missing.
type Gaps struct {
	// Unfollowed has it take events for done that no projection follows any more.
	Unfollowed bool

	// Versions has it stop before a gap, and note what it has applied.
	Versions Versions
	// Accept has it go on over gaps, for good: a missing version that comes later
	// is not applied.
	Accept bool
	// Lost has it take away what later events were applied over, and go on where
	// parked messages are gone.
	Lost bool
	// Returning is for whoever puts dead letters back: nobody else lifts such a halt.
	Returning bool
	// Filling chooses what is applied; nil while no version is filled.
	Filling Filling
	// Left is told of each event that Unfollowed, Accept or Lost lets pass, and why that is
	// no matter of course; from several goroutines, and again where it is tried again.
	// Nil is not.
	Left func(e *contract.Event, why string)

	links *links
	// passing is up to where the versions had come that Accept goes on from.
	passing contract.Version
}

func (g *Gaps) begin(ctx context.Context, aggregate string) (err error) {
	if g.Versions == nil {
		return nil
	}
	if g.Accept {
		if g.passing, err = g.Versions.LastVersion(ctx, aggregate); err != nil {
			return fmt.Errorf("look up the version of aggregate %q: %w", aggregate, err)
		}
		if err := g.Versions.ForgetVersion(ctx, aggregate); err != nil {
			return fmt.Errorf("forget the version of aggregate %q: %w", aggregate, err)
		}
	}
	g.links, err = lookUp(ctx, g.Versions, aggregate)
	return err
}

// before is what is missing before an event, if that matters. Another redrive
// may have come further, so what is missing is looked up again.
func (g *Gaps) before(ctx context.Context, e *contract.Event) (string, error) {
	if g.links != nil && g.Accept {
		if gap := missing(g.passing, e.Version); gap != "" {
			g.left(e, gap)
		}
		g.passing = later(g.passing, e.Version)
		return "", nil
	}
	if g.links == nil || missing(g.links.reached, e.Version) == "" {
		return "", nil
	}
	links, err := lookUp(ctx, g.Versions, g.links.aggregate)
	if err != nil {
		return "", err
	}
	return missing(links.reached, e.Version), nil
}

func (g *Gaps) left(e *contract.Event, why string) {
	if g.Left != nil {
		g.Left(e, why)
	}
}

func (g *Gaps) passed(ctx context.Context, version contract.Version) error {
	if g.links == nil {
		return nil
	}
	return g.links.reach(ctx, version)
}

// decide is what a redrive makes of a parked message, or the reason why it stops
// before it.
func (g *Gaps) decide(ctx context.Context, decider Decider, m *ParkedMessage) (change *projection.Change, writes []projection.Write, reason string, err error) {
	if m.Foreign != "" {
		return nil, nil, m.Foreign, nil
	}
	change, err = decode(m.Message)
	if err != nil {
		return nil, nil, err.Error(), nil
	}
	if lost := unfollowed(m, change.Type, decider.Followers(change.Type)); lost != "" {
		if !g.Unfollowed {
			return nil, nil, lost, nil
		}
		g.left(&change.Event, lost)
	}
	if reason, err = g.before(ctx, &change.Event); err != nil || reason != "" {
		return nil, nil, reason, err
	}
	writes, failed, err := decide(ctx, decider, change)
	if err != nil {
		return nil, nil, "", err
	}
	if failed != nil {
		return nil, nil, failed.Error(), nil
	}
	if writes, err = begin(g.Filling).Of(ctx, &change.Event, writes); err != nil {
		return nil, nil, "", err
	}
	return change, writes, "", nil
}

// Rehearsal goes through an aggregate's parked messages as a redrive would, and
// changes nothing. It does not see what the store would refuse.
type Rehearsal struct {
	// Applied, PassedBy and Lost are what those of Redriven would be.
	Applied, PassedBy, Lost int

	decider Decider
	parked  ParkedMessages
	gaps    Gaps
}

// Rehearse begins a rehearsal of an aggregate's redrive. It returns at which event
// and why the redrive would not begin, if it would not.
func Rehearse(ctx context.Context, decider Decider, parked ParkedMessages, gaps Gaps, aggregate string) (r *Rehearsal, eventID, reason string, err error) {
	if gaps.Versions != nil {
		gaps.Versions = &imagined{Versions: gaps.Versions}
	}
	r = &Rehearsal{decider: decider, parked: parked, gaps: gaps}
	if eventID, reason, err = gaps.stopped(ctx, parked, aggregate); err != nil || reason != "" {
		return nil, eventID, reason, err
	}
	return r, "", "", r.gaps.begin(ctx, aggregate)
}

// Next counts what would become of the redrive's next message, or says why it would
// stop before it.
func (r *Rehearsal) Next(ctx context.Context, m *ParkedMessage) (reason string, err error) {
	now := due
	change, decided, reason, err := r.gaps.decide(ctx, r.decider, m)
	if err == nil && reason == "" {
		now, reason, err = r.gaps.overtaken(ctx, r.parked, m, &change.Event, decided)
	}
	if err != nil || reason != "" {
		return reason, err
	}
	switch {
	case now == lost:
		r.Lost++
	case now == due && slices.ContainsFunc(decided, func(w projection.Write) bool { return w.Changes() }):
		r.Applied++
	case now == due:
		r.PassedBy++
	}
	return "", r.gaps.passed(ctx, change.Version)
}

// imagined are the versions as they would be.
type imagined struct {
	Versions
	forgotten bool
	reached   contract.Version
}

// LastVersion implements Versions.
func (v *imagined) LastVersion(ctx context.Context, aggregate string) (contract.Version, error) {
	if v.forgotten {
		return v.reached, nil
	}
	stored, err := v.Versions.LastVersion(ctx, aggregate)
	return later(stored, v.reached), err
}

// AdvanceVersion implements Versions.
func (v *imagined) AdvanceVersion(_ context.Context, _ string, version int64) error {
	v.reached = later(v.reached, contract.VersionOf(version))
	return nil
}

// ForgetVersion implements Versions.
func (v *imagined) ForgetVersion(context.Context, string) error {
	v.forgotten, v.reached = true, contract.Version{}
	return nil
}
