package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
)

// stopped says at which event and why a redrive is not begun, if it is not: where
// the halt is for somebody else to lift, and where messages are missing that were
// parked under it. What is left would be applied as if they had never been.
func (g *Gaps) stopped(ctx context.Context, parked ParkedMessages, aggregate string) (eventID, reason string, err error) {
	mark, err := parked.Mark(ctx, aggregate)
	if err != nil || mark == nil {
		return "", "", err
	}
	if reason := g.returning(mark); reason != "" {
		return mark.EventID, reason, nil
	}
	missing, err := parked.Missing(ctx, aggregate)
	if err != nil || missing == 0 {
		return "", "", err
	}
	why := gone(aggregate, mark, missing)
	if !g.Lost {
		return mark.EventID, why, nil
	}
	g.left(&contract.Event{AggregateID: aggregate, ID: mark.EventID}, why)
	return "", "", nil
}

// gone says that messages are missing that were parked under a halt.
func gone(aggregate string, mark *projection.Halted, missing int64) string {
	if strings.HasPrefix(mark.Reason, deletedHalt) {
		return wasDeleted(aggregate, mark.EventID)
	}
	return fmt.Sprintf("%d messages that were parked under the halt of aggregate %q at event %q are gone, and nobody has redriven or discarded them: "+
		"parked messages were deleted, or are of a backup. Restore them; or go on without them with --accept-lost, and then %s. "+
		"--accept-lost alone is right where a command of an older release has redriven them: that is counted nowhere", missing, aggregate, mark.EventID, Rebuild)
}

// standing is how a parked message stands to what its documents have.
type standing int

const (
	// due: it is to be applied, or is a repeat.
	due standing = iota
	// taken: another redrive has dealt with it.
	taken
	// lost: it cannot be applied any more, and is taken away.
	lost
)

// overtaken says why a parked message cannot be applied any more, where it is not to
// be taken away. Nothing is applied over a parked message while its aggregate is
// halted; so where another event has, a halt was lost, or a write was on its way
// when the message was put back.
func (g *Gaps) overtaken(ctx context.Context, parked ParkedMessages, m *ParkedMessage, e *contract.Event, writes []projection.Write) (standing, string, error) {
	if m.Behind && !m.Returned {
		return due, "", nil
	}
	_, beyond, other, err := compare(ctx, parked, writes, nil, g.Filling)
	if err != nil || beyond == "" {
		return due, other, err
	}
	// Another redrive goes in the same order, and has taken the message away before
	// it applied the next.
	if there, err := parked.IsParked(ctx, e); err != nil || !there {
		return taken, "", err
	}
	if !g.Lost {
		return due, beyond + ". --accept-lost takes the event away without applying it; then " + Rebuild, nil
	}
	g.left(e, beyond)
	return lost, "", nil
}

// returning says why a redrive leaves a halt to those who put dead letters back.
func (g *Gaps) returning(mark *projection.Halted) string {
	if g.Returning || mark == nil || !ForReturn(mark.Reason) {
		return ""
	}
	return mark.Reason + ", and what is parked comes after that: projector dlq redrive --all finishes it and lifts the halt, and takes the same --accept flags"
}

// LostHalt is a halt that should be there and is not.
type LostHalt struct {
	// Event is that of the first parked message; where none is parked any more, the
	// one that the aggregate was halted at. Without data.
	Event contract.Event
	// Deleted tells that all that was parked under the halt is gone with it.
	Deleted bool
}

// Halt is the halt that is to be put back.
func (l *LostHalt) Halt() Halt {
	reason := "messages were parked and their halt was gone: it is put back"
	if l.Deleted {
		reason = deletedHalt + ", and is put back: see projector parked redrive"
	}
	return Halt{Event: l.Event, Reason: reason, Uncounted: true, Deleted: l.Deleted}
}

// Stops says why a redrive stops at a halt that was Deleted.
func (l *LostHalt) Stops() string {
	return wasDeleted(l.Event.AggregateID, l.Event.ID)
}

// deletedHalt is how the reason of a halt begins that was deleted with all that was
// parked under it.
const deletedHalt = "the halt was deleted with all that was parked under it"

func wasDeleted(aggregate, eventID string) string {
	return fmt.Sprintf("the halt of aggregate %q at event %q was deleted with all messages that were parked under it, and later events may have been applied over them. "+
		"Restore halted_aggregates and parked_messages; or go on without them with --accept-lost, and then %s. "+
		"--accept-lost alone is right where a command of an older release has lifted the halt: that leaves its note", aggregate, eventID, Rebuild)
}

// Unhalted finds halts that are lost, if something has gone wrong.
type Unhalted interface {
	// Unhalted are the lost halts of the aggregates, or of all where none is given:
	// those under which messages are parked, and those that were deleted with these.
	Unhalted(ctx context.Context, aggregates ...string) ([]LostHalt, error)
}

// Rehalt puts back lost halts of the aggregates, or of all where none is given, and
// returns which. With wait it returns once every replica knows of them.
func Rehalt(ctx context.Context, store Unhalted, parking Parking, wait bool, aggregates ...string) ([]string, error) {
	lost, err := store.Unhalted(ctx, aggregates...)
	if err != nil || len(lost) == 0 {
		return nil, err
	}
	var halted []string
	var errs []error
	for i := range lost {
		aggregate := lost[i].Event.AggregateID
		if _, err := parking.Halt(ctx, lost[i].Halt()); err != nil {
			errs = append(errs, fmt.Errorf("halt aggregate %q: %w", aggregate, err))
			continue
		}
		halted = append(halted, aggregate)
	}
	if wait {
		errs = append(errs, awaitLists(ctx))
	}
	return halted, errors.Join(errs...)
}
