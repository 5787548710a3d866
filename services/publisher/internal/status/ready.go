package status

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"changerelay/services/publisher/internal/relay"
)

// Ready fails while the process could not publish if it had to.
func (b *Tracker) Ready() error { return b.snapshot().unready() }

// unready returns why the process could not publish if it had to.
func (s snapshot) unready() error {
	long := func(since time.Time) bool { return !since.IsZero() && time.Since(since) > outageGrace }
	switch {
	case s.state == stateStarting, s.state == StateHalted, s.state == stateDraining, s.state == stateStopped:
		return errors.New(s.state)
	case s.outage.Err != nil && (s.outage.Class == relay.Blocked || s.outage.Class == relay.Refused || time.Since(s.outage.Since) > outageGrace):
		return fmt.Errorf("sending fails: %w", s.outage.Err)
	case long(s.claiming):
		return fmt.Errorf("leading since %s without a claim: %w", clock(s.claiming), cmp.Or(s.err, errUnknown))
	case long(s.resuming):
		return fmt.Errorf("resuming since %s: the source looks for the place to go on from", clock(s.resuming))
	case long(s.unread):
		return fmt.Errorf("the source cannot be read since %s: %w", clock(s.unread), cmp.Or(s.err, errUnknown))
	case long(s.still):
		return fmt.Errorf("the source shows nothing newer since %s: %w", clock(s.still), cmp.Or(s.err, errUnknown))
	case long(s.unsaved):
		return fmt.Errorf("the state database does not store since %s: %w", clock(s.unsaved), s.relay.Unsaved.Err)
	case s.election.Conflict != "":
		return errors.New("the lease is used for another stream as well")
	case long(s.election.FailingSince):
		return fmt.Errorf("the lease can be neither taken nor renewed since %s: %w", clock(s.election.FailingSince), cmp.Or(s.err, errUnknown))
	}
	return nil
}

// errUnknown and errSilent stand for a reason that nobody has told yet.
var (
	errUnknown = errors.New("no answer yet")
	errSilent  = errors.New("the source does not answer")
	errStill   = errors.New("the source answers, and its change stream stands still: check that the member that is read follows its primary, " +
		"that every shard has one, and that a majority of each has what is written")
)

// clock is a time as people compare it with others.
func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
