package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
)

// stopped says at which event and why a redrive is not begun, if it is not: where
// the halt is for somebody else to lift, and where messages are missing that were
// parked under it. What is left would be applied as if they had never been.
func (g *Gaps) stopped(ctx context.Context, shelf Shelf, aggregate string) (eventID, reason string, err error) {
	mark, err := shelf.Mark(ctx, aggregate)
	if err != nil || mark == nil {
		return "", "", err
	}
	if reason := g.returning(mark); reason != "" {
		return mark.EventID, reason, nil
	}
	missing, err := shelf.Missing(ctx, aggregate)
	if err != nil || missing == 0 {
		return "", "", err
	}
	why := fmt.Sprintf("%d messages that were parked under the halt of aggregate %q at event %q are gone, and nobody has redriven or discarded them: "+
		"parked messages were deleted, or are of a backup. Restore them, or %s; --accept-lost goes on without them", missing, aggregate, mark.EventID, rebuild)
	if !g.Lost {
		return mark.EventID, why, nil
	}
	g.left(&contract.Event{AggregateID: aggregate, ID: mark.EventID}, why)
	return "", "", nil
}

// overtaken says why a parked message cannot be applied any more, and is no repeat
// although the store says so. Nothing is applied over a parked message while its
// aggregate is halted; so where another event has, a halt was lost, or a write was
// on its way when the message was put back.
func (g *Gaps) overtaken(ctx context.Context, shelf Shelf, m *Shelved, e *contract.Event, writes []projection.Write) (string, error) {
	if m.Behind && !m.Returned {
		return "", nil
	}
	_, beyond, err := compare(ctx, shelf, writes)
	if err != nil || beyond == "" {
		return "", err
	}
	// Another redrive goes in the same order, and has taken the message away before
	// it applied the next.
	if there, err := shelf.Shelved(ctx, e); err != nil || !there {
		return "", err
	}
	if !g.Lost {
		return beyond + ". --accept-lost takes the event away without applying it", nil
	}
	g.left(e, beyond)
	return "", nil
}

// returning says why a redrive leaves a halt to those who put dead letters back.
func (g *Gaps) returning(mark *projection.Halted) string {
	if g.Returning || mark == nil || !ForReturn(mark.Reason) {
		return ""
	}
	return mark.Reason + ", and what is parked comes after that: projector dlq redrive --all finishes it and lifts the halt"
}

// Unhalted is where messages are parked without a halt, if something has gone wrong.
type Unhalted interface {
	// Unhalted are the first parked messages of the aggregates, or of all where none
	// is given, that are not halted: without data.
	Unhalted(ctx context.Context, aggregates ...string) ([]contract.Event, error)
}

// Rehalt puts the halts back of aggregates, or of all where none is given, that
// have parked messages and no halt, and returns which. With wait it returns once
// every replica knows of them.
func Rehalt(ctx context.Context, store Unhalted, parking Parking, wait bool, aggregates ...string) ([]string, error) {
	events, err := store.Unhalted(ctx, aggregates...)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	var halted []string
	var errs []error
	for _, e := range events {
		if _, err := parking.Halt(ctx, Halt{Event: e, Reason: "messages were parked and their halt was gone: it is put back", Uncounted: true}); err != nil {
			errs = append(errs, fmt.Errorf("halt aggregate %q: %w", e.AggregateID, err))
			continue
		}
		halted = append(halted, e.AggregateID)
	}
	if wait {
		errs = append(errs, awaitLists(ctx))
	}
	return halted, errors.Join(errs...)
}

// awaitLists waits until every list of halts that a replica trusts was asked for
// later than now.
func awaitLists(ctx context.Context) error {
	timer := time.NewTimer(trustTime)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
