package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/rebuild"
	"changerelay/services/projector/internal/servicebus"
	"changerelay/services/projector/internal/watch"
)

// holes is what may be missing in a version although it is further on: what is
// halted or parked in its group, and what is dead-lettered in the subscription that
// feeds it and in those that did, which no position shows. What cannot be looked at
// may be there. What is dead-lettered for one of the reasons comes is none: the version
// is given it in another way.
func (s *scope) holes(ctx context.Context, comes ...string) ([]string, error) {
	var reasons []string
	halted, err := s.store.Halts.CountHalted(ctx)
	if err != nil {
		return nil, err
	}
	parked, err := s.store.Parked.CountParked(ctx)
	if err != nil {
		return nil, err
	}
	if halted > 0 {
		reasons = append(reasons, fmt.Sprintf("%d aggregates are halted: see projector parked list", halted))
	}
	if halted == 0 && parked > 0 {
		reasons = append(reasons, fmt.Sprintf("%d messages are parked: see projector parked list", parked))
	}
	feeds, err := s.store.Feeds(ctx)
	if err != nil {
		return nil, err
	}
	records, err := s.store.Rebuilds(ctx) // a rebuild may have begun since the scope was made
	if err != nil {
		return nil, err
	}
	filling := rebuild.Filled(s.cfg.Group, records, s.declared, s.store.Writes)
	for i, feed := range feeds {
		found := deadEvents(ctx, feed, &foundDead{comes: comes, of: &takers{s.cfg.Group, filling}})
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !feed.Beside(feeds[0]) {
			found.unseen = fmt.Errorf("they are in the namespace %q", feed.Namespace)
		}
		if i > 0 && errors.Is(found.unseen, servicebus.ErrNoEntity) {
			continue // it was deleted after the group had been moved from it, and its dead letters with it
		}
		if reason := found.reason(feed); reason != "" {
			reasons = append(reasons, s.cfg.Service().Redactor().Text(reason))
		}
	}
	return reasons, nil
}

// foundDead is what was found in a dead-letter queue.
type foundDead struct {
	letters    int
	aggregates map[string]bool
	resent     map[string]int // how many were resent for each version that is filled
	unseen     error          // why it cannot be looked at
	comes      []string       // reasons of those that do not count
	of         *takers        // whose count alone; nil where everybody's do
}

// takers are those who take messages: a group, and the versions of its projections that are
// filled, nil for none.
type takers struct {
	group   string
	filling delivery.Filling
}

// reason is what that says against a version, "" for nothing.
func (f *foundDead) reason(feed readmodel.Feed) string {
	of := fmt.Sprintf("subscription %q of topic %q", feed.Subscription, feed.Topic)
	switch {
	case f.unseen != nil:
		return fmt.Sprintf("the dead letters of %s cannot be looked at, so nobody knows what is missing: %s", of, strings.Join(strings.Fields(f.unseen.Error()), " "))
	case f.letters > 0:
		reasons := []string{fmt.Sprintf("%d messages of %d aggregates are dead-lettered in %s: see projector dlq list and redrive", f.letters, len(f.aggregates), of)}
		for _, version := range slices.Sorted(maps.Keys(f.resent)) {
			reasons = append(reasons, fmt.Sprintf("%d of them were resent for %q, which alone lacks them: projector dlq redrive says how each comes there", f.resent[version], version))
		}
		return strings.Join(reasons, "; ")
	}
	return ""
}

// add counts a dead letter. One that the projector has found to be no event is none, nor is
// one that was resent for somebody else, such as a version that a rebuild has ended; of what
// cannot be placed, the session is taken for the aggregate.
func (f *foundDead) add(d servicebus.DeadLetter) {
	if d.Reason == delivery.ReasonForeign || slices.Contains(f.comes, d.Reason) {
		return
	}
	fills := ""
	if resend := contract.ResendOf(d.Message.Message); f.of != nil {
		if !delivery.Meant(resend, f.of.group, f.of.filling) {
			return
		}
		fills = delivery.Fills(resend, f.of.filling)
	}
	f.letters++
	if fills != "" {
		f.resent[fills]++
	}
	aggregate := d.SessionID
	if event, placed := contract.Place(d.Message.Message); placed {
		aggregate = event.AggregateID
	}
	f.aggregates[aggregate] = true
}

// deadEvents looks for dead letters that are events, in a subscription of the
// environment's namespace, and counts in found those that it asks for.
func deadEvents(ctx context.Context, feed readmodel.Feed, found *foundDead) *foundDead {
	ctx, cancel := context.WithTimeout(ctx, watch.DeadTime)
	defer cancel()
	found.aggregates, found.resent = map[string]bool{}, map[string]int{}
	cfg, err := config.LoadBus()
	if err == nil {
		cfg.Topic, cfg.Subscription = feed.Topic, feed.Subscription
		err = cfg.ReachDeadLetters(ctx, func(letters *servicebus.DeadLetters) error {
			return letters.Peek(ctx, func(d servicebus.DeadLetter) error {
				found.add(d)
				return nil
			})
		})
	}
	found.unseen = err
	return found
}
