package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
)

// How far a version may be behind the live one when it is asked to take over:
// what it lacks at that moment it must have reached in a time that --wait sets.
const (
	maxBehind   = 1000
	defaultLook = 10 * time.Second
)

// errNotSwitched makes a switch's exit status tell that it was refused.
var errNotSwitched = errors.New("not switched")

// written are the versions that the projectors write: those that PROJECTIONS declares,
// or what rebuilds have made of them.
func (s *scope) written() []projection.Version { return versionsOf(s.projections) }

// versionsOf are the versions among projections.
func versionsOf(projections projection.Projections) (versions []projection.Version) {
	for _, p := range projections {
		if version, is := projection.VersionOf(p); is {
			versions = append(versions, version)
		}
	}
	return versions
}

// listVersions prints every version that the database has of the projections
// declared. The error says of which there are none.
func (s *scope) listVersions(ctx context.Context) error {
	declared := versionsOf(s.declared)
	if len(declared) == 0 {
		return errors.New("PROJECTIONS declares no projection with a version: set it as the projectors have it")
	}
	var missing []error
	for i := range declared {
		states, err := s.store.Versions(ctx, &declared[i])
		if err != nil {
			return err
		}
		if len(states) == 0 {
			missing = append(missing, fmt.Errorf("%q has no version of projection %q", s.cfg.Database, declared[i].Projection))
		}
		for _, state := range states {
			if err := s.lines.Encode(state); err != nil {
				return err
			}
		}
	}
	return errors.Join(append(missing, s.inhabited(ctx))...)
}

// switched is what became of a switch.
type switched struct {
	Projection string `json:"projection"`
	View       string `json:"view"`
	// From and To are versions; From is 0 where readers saw none.
	From     int  `json:"from"`
	To       int  `json:"to"`
	Switched bool `json:"switched"`
	// DryRun: nothing was switched, whatever speaks for it.
	DryRun bool `json:"dry_run,omitempty"`
	// Refused says what speaks against it; with --force it was done all the same.
	Refused []string `json:"refused,omitempty"`
}

// change has readers see the version of a projection that PROJECTIONS declares,
// once it has all that the live one has.
func (s *scope) switchVersion(ctx context.Context, o switchOptions) error {
	version, err := s.find(o.name, o.to)
	if err != nil {
		return err
	}
	if err := unbuilt(s.records.Under(version)); err != nil {
		return err
	}
	from, err := s.store.Live(ctx, version)
	if errors.Is(err, readmodel.ErrNotAView) {
		return fmt.Errorf("%w: stop its projectors, rename it to %q, run projector setup with version 1 declared, and start them so", err, version.Other(1).Collection())
	}
	if err != nil {
		return err
	}
	done := switched{Projection: o.name, View: version.View, From: from, To: o.to}
	if done.Refused, err = s.against(ctx, version, from, o.wait, delivery.Rebuild); err != nil {
		return err
	}
	done.DryRun = s.flags.DryRun
	if !done.DryRun && (len(done.Refused) == 0 || o.force) {
		if err := s.alone(ctx, version, func(ctx context.Context) error { return s.present(ctx, version, &done) }); err != nil {
			return err
		}
		done.Switched = true
	}
	if err := s.lines.Encode(done); err != nil {
		return err
	}
	if !done.Switched && (!done.DryRun || len(done.Refused) > 0 && !o.force) {
		return errNotSwitched
	}
	return nil
}

// present has readers see a version, with a line in the ledger where something
// speaks against it.
func (s *scope) present(ctx context.Context, version *projection.Version, done *switched) error {
	show := func() error { return s.store.SwitchView(ctx, version) }
	if len(done.Refused) == 0 {
		return show()
	}
	command := fmt.Sprintf("switch %s --to %d --force", done.Projection, done.To)
	return s.decide(ctx, &readmodel.Decision{Command: command, Why: done.Refused}, show)
}

// find is the declared version of a projection, if it is that one.
func (s *scope) find(name string, number int) (*projection.Version, error) {
	var other error
	for _, written := range s.written() {
		switch {
		case written.Projection != name:
		case written.Number == number:
			return &written, nil
		case other == nil:
			other = fmt.Errorf("PROJECTIONS declares version %d of projection %q: run the command with the environment of the projectors of version %d", written.Number, name, number)
		}
	}
	if other == nil {
		other = fmt.Errorf("PROJECTIONS declares no version of projection %q", name)
	}
	return nil, other
}

// resentAnew is the way to what a version that is filled lacks before what it has.
const resentAnew = "what the source has of that was lost on its way, such as in the dead letters, and the version takes it from no later resend: " +
	"end the rebuild with --cancel, and begin again"

// against is what speaks against readers seeing a version instead of another. Its
// holes come last: what it was waited for may have become one. way is what brings what is
// missing before other events, and comes is as for holes.
func (s *scope) against(ctx context.Context, version *projection.Version, from int, wait time.Duration, way string, comes ...string) ([]string, error) {
	lacks, err := s.lacks(ctx, version, from, wait)
	if err != nil {
		return nil, err
	}
	begins, err := s.begins(ctx, version, from, way)
	if err != nil {
		return nil, err
	}
	holes, err := s.holes(ctx, comes...)
	return slices.Concat(lacks, begins, holes), err
}

// mostNamed bounds the aggregates that a reason names.
const mostNamed = 5

// firstOf are the first of aggregates, as a reason names them.
func firstOf(aggregates []string) string {
	var names []string
	for _, aggregate := range aggregates[:min(len(aggregates), mostNamed)] {
		names = append(names, strconv.Quote(aggregate))
	}
	return strings.Join(names, ", ")
}

// begins is what speaks against a version because of where its aggregates begin: later
// than those that readers see, or than what was resent for them. The events before that
// are in no position, and do not come any more. way is what brings them.
func (s *scope) begins(ctx context.Context, version *projection.Version, from int, way string) (reasons []string, err error) {
	if from != 0 && from != version.Number {
		late, err := s.store.Later(ctx, version, version.Other(from), maxBehind+1)
		if err != nil {
			return nil, err
		}
		var begun []string
		for _, l := range late {
			begun = append(begun, l.Aggregate)
		}
		if len(late) > 0 {
			reasons = append(reasons, fmt.Sprintf("version %d begins %s aggregates later than version %d, and lacks what was before: %s; %s; --force switches all the same",
				version.Number, atMost(len(late)), from, firstOf(begun), way))
		}
	}
	var lacking, within []string
	err = s.store.Lacks(ctx, version.Account(), func(l readmodel.Lack) error {
		if l.Within {
			within = append(within, l.Aggregate)
		} else {
			lacking = append(lacking, l.Aggregate)
		}
		return nil
	})
	if len(lacking) > 0 {
		reasons = append(reasons, fmt.Sprintf("version %d lacks what was resent of %d aggregates, which had begun later: %s; %s; where nobody needs that: projector incomplete list and accept; --force switches all the same",
			version.Number, len(lacking), firstOf(lacking), way))
	}
	if len(within) > 0 {
		reasons = append(reasons, fmt.Sprintf("version %d lacks events before or between those that were resent of %d aggregates: %s; %s; where the source has nothing there: projector incomplete list and accept; --force switches all the same",
			version.Number, len(within), firstOf(within), way))
	}
	return reasons, err
}

// atMost is a number that is counted up to maxBehind.
func atMost(n int) string {
	if n > maxBehind {
		return fmt.Sprintf("more than %d", maxBehind)
	}
	return fmt.Sprint(n)
}

// lacks is what a version lacks of what the live one has.
func (s *scope) lacks(ctx context.Context, version *projection.Version, from int, wait time.Duration) ([]string, error) {
	switch from {
	case version.Number:
		return nil, nil
	case 0:
		return s.unseen(ctx, version)
	}
	behind, err := s.store.Behind(ctx, version, version.Other(from), maxBehind+1)
	if errors.Is(err, readmodel.ErrUnnoted) {
		return []string{fmt.Sprintf("version %d may be behind version %d, of which %s; --force switches all the same", version.Number, from, err)}, nil
	}
	if err != nil {
		return nil, err
	}
	if len(behind) > maxBehind {
		return []string{fmt.Sprintf("version %d is behind version %d in %s aggregates: %s", version.Number, from, atMost(len(behind)), firstOf(slices.Sorted(maps.Keys(behind))))}, nil
	}
	left, err := s.store.Await(ctx, version, behind, wait)
	if err != nil || len(left) == 0 {
		return nil, err
	}
	return []string{fmt.Sprintf("version %d does not have within %s what version %d had of %d aggregates: %s", version.Number, wait, from, len(left), firstOf(slices.Sorted(maps.Keys(left))))}, nil
}

// unseen is what speaks against a version where readers see none: others with
// documents that nobody can say were not seen before.
func (s *scope) unseen(ctx context.Context, version *projection.Version) (reasons []string, err error) {
	states, err := s.store.Versions(ctx, version)
	for _, other := range states {
		if other.Version != version.Number && other.Documents > 0 {
			reasons = append(reasons, fmt.Sprintf("readers see no version, and version %d has documents, so nobody knows what version %d must have: "+
				"switch to that one first, in its environment; --force switches all the same", other.Version, version.Number))
		}
	}
	return reasons, err
}

// switchOptions are the arguments of projector switch.
type switchOptions struct {
	name  string
	to    int
	force bool
	wait  time.Duration
}
