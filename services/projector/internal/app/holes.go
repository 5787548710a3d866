package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/servicebus"
)

// holes is what may be missing in a version although it is further on: what is
// halted or parked in its group, and what is dead-lettered in its subscription,
// which no position shows. What cannot be looked at may be there.
func (s *scope) holes(ctx context.Context) ([]string, error) {
	var reasons []string
	halted, err := s.store.CountHalted(ctx)
	if err != nil {
		return nil, err
	}
	parked, err := s.store.CountParked(ctx)
	if err != nil {
		return nil, err
	}
	if halted > 0 {
		reasons = append(reasons, fmt.Sprintf("%d aggregates are halted: see projector parked list", halted))
	}
	if halted == 0 && parked > 0 {
		reasons = append(reasons, fmt.Sprintf("%d messages are parked: see projector parked list", parked))
	}
	of := fmt.Sprintf("subscription %q of topic %q", s.cfg.Subscription, s.cfg.Topic)
	letters, aggregates, err := deadEvents(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		reasons = append(reasons, fmt.Sprintf("the dead letters of %s cannot be looked at, so nobody knows what is missing: %s", of, err))
	case letters > 0:
		reasons = append(reasons, fmt.Sprintf("%d messages of %d aggregates are dead-lettered in %s: see projector dlq list and redrive", letters, aggregates, of))
	}
	return reasons, nil
}

// deadEvents counts the dead letters of the environment's subscription, and their
// aggregates. One that the projector has found to be no event is none; of what
// cannot be placed, the session is taken for the aggregate.
func deadEvents(ctx context.Context) (letters, aggregates int, err error) {
	attempt, cancel := context.WithTimeout(ctx, deadTime)
	defer cancel()
	found := map[string]bool{}
	var problems bytes.Buffer
	err = onDeadLetters(attempt, io.Discard, &problems, func(ctx context.Context, dead *servicebus.DeadLetters, _ *json.Encoder) error {
		return dead.Peek(ctx, func(d servicebus.DeadLetter) error {
			if d.Reason == delivery.ReasonForeign {
				return nil
			}
			letters++
			aggregate := d.SessionID
			if event, placed := contract.Place(d.Message.Message); placed {
				aggregate = event.AggregateID
			}
			found[aggregate] = true
			return nil
		})
	})
	if problems.Len() > 0 {
		err = errors.New(strings.Join(strings.Fields(problems.String()), " "))
	}
	return letters, len(found), err
}
