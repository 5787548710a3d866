package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/settings"
)

// readConfig is what commands that work on the read database need. They take
// the same variables as the service.
type readConfig struct {
	MongoURI         settings.Secret `envconfig:"READMODEL_MONGODB_URI" required:"true" desc:"MongoDB connection string of the read models"`
	Database         string          `envconfig:"READMODEL_DATABASE" required:"true" desc:"database of the read models"`
	MongoTimeout     time.Duration   `envconfig:"READMODEL_TIMEOUT" default:"15s" desc:"longest time for one MongoDB operation"`
	Group            string          `envconfig:"READMODEL_GROUP" desc:"group of the projectors that parked the messages"`
	ConnectionString settings.Secret `envconfig:"SERVICEBUS_CONNECTION_STRING" desc:"connection string of the namespace that the messages came from"`
	Namespace        string          `envconfig:"SERVICEBUS_NAMESPACE" desc:"host name of that namespace"`
	Topic            string          `envconfig:"SERVICEBUS_TOPIC" desc:"topic that the messages came from"`
	Subscription     string          `envconfig:"SERVICEBUS_SUBSCRIPTION" desc:"subscription that the messages came from"`
	Projections      string          `envconfig:"PROJECTIONS" desc:"YAML file of projections"`
	LatestCollection string          `envconfig:"LATEST_COLLECTION" default:"latest" desc:"collection of the latest data, where PROJECTIONS is not set"`
}

// load reads the environment and the projections. The error holds every problem
// there is.
func (c *readConfig) load() (projection.Projections, error) {
	var projections projection.Projections
	err := settings.Load(c, func() (problems []*settings.Problem) {
		var err error
		if projections, err = c.service().projections(); err != nil {
			problems = append(problems, settings.Problemf("PROJECTIONS", "%s", err))
		}
		return problems
	})
	return projections, err
}

// service is the configuration as the service has it.
func (c *readConfig) service() *Config {
	return &Config{
		MongoURI: c.MongoURI, Database: c.Database, MongoTimeout: c.MongoTimeout, Group: c.Group,
		ServiceBusConnectionString: c.ConnectionString, ServiceBusNamespace: c.Namespace, Topic: c.Topic, Subscription: c.Subscription,
		Projections: c.Projections, LatestCollection: c.LatestCollection,
	}
}

// list prints the parked messages, of one aggregate or all, one a line. None are
// good news only where there is a projector.
func (s *scope) list(ctx context.Context, aggregate string) error {
	found := false
	err := s.store.Parked(ctx, aggregate, func(p readmodel.ParkedMessage) error {
		found = true
		return s.lines.Encode(p)
	})
	if err != nil || found {
		return err
	}
	return s.inhabited(ctx)
}

// wholeParked is a parked message as it is printed whole.
type wholeParked struct {
	readmodel.ParkedMessage
	Message shownMessage `json:"message"`
	// DryRun tells that a discard would have removed it.
	DryRun bool `json:"dry_run,omitempty"`
}

// show prints an aggregate's parked messages whole.
func (s *scope) show(ctx context.Context, aggregate string) error {
	found := false
	err := s.store.Parked(ctx, aggregate, func(p readmodel.ParkedMessage) error {
		found = true
		return s.lines.Encode(wholeParked{ParkedMessage: p, Message: show(p.Message)})
	})
	if err == nil && !found {
		err = errNotParked
	}
	return err
}

// errHalted makes a redrive's exit status tell that aggregates are still halted.
var errHalted = errors.New("aggregates are still halted")

// redrive applies the parked messages of an aggregate, or of all where it is "".
func (s *scope) redrive(ctx context.Context, aggregate string) error {
	putBack, err := s.putHaltsBack(ctx, aggregate)
	if err != nil {
		return err
	}
	aggregates, err := s.halted(ctx, aggregate, putBack)
	if err != nil {
		return err
	}
	halted := 0
	each := func(done delivery.Redriven) error {
		if !done.Lifted {
			halted++
		}
		done.PutBack = slices.Contains(putBack, done.AggregateID)
		return s.lines.Encode(done)
	}
	if s.flags.DryRun {
		halted, err = s.rehearseAll(ctx, aggregates)
	} else {
		err = s.accepting(ctx, aggregates, func(gaps delivery.Gaps) error {
			return delivery.RedriveAll(ctx, s.projections, s.store, s.store, gaps, aggregates, each)
		})
	}
	if err != nil {
		return err
	}
	if halted > 0 {
		return fmt.Errorf("%w: %d", errHalted, halted)
	}
	return nil
}

// accepting runs a redrive, with a line in the ledger where it is to go on over
// what is missing or not followed. The line names the aggregates while it is open,
// and at its end the events that were let pass.
func (s *scope) accepting(ctx context.Context, aggregates []string, redrive func(delivery.Gaps) error) error {
	gaps := s.gaps()
	if !gaps.Accept && !gaps.Unfollowed && !gaps.Lost {
		return redrive(gaps)
	}
	d := &readmodel.Decision{Command: "parked redrive"}
	if gaps.Accept {
		d.Command += " --accept-gaps"
	}
	if gaps.Unfollowed {
		d.Command += " --accept-unfollowed"
	}
	if gaps.Lost {
		d.Command += " --accept-lost"
	}
	for _, aggregate := range aggregates {
		d.Add(readmodel.Named{Aggregate: aggregate})
	}
	return s.decide(ctx, d, func() error {
		d.About, d.Count = nil, 0
		var mu sync.Mutex
		gaps.Left = func(e *contract.Event, why string) {
			mu.Lock()
			defer mu.Unlock()
			d.Add(namedEvent(e, why))
		}
		return redrive(gaps)
	})
}

// namedEvent is an event as the ledger has it.
func namedEvent(e *contract.Event, reason string) readmodel.Named {
	n := readmodel.Named{Aggregate: e.AggregateID, Event: e.ID, Reason: reason}
	if e.Version.Known {
		n.Version = &e.Version.Number
	}
	return n
}

// gaps is how a redrive deals with what is missing.
func (s *scope) gaps() delivery.Gaps {
	return delivery.Gaps{Versions: s.versions, Accept: s.flags.AcceptGaps, Unfollowed: s.flags.AcceptUnfollowed, Lost: s.flags.AcceptLost}
}

// putHaltsBack puts the halt back of an aggregate that has parked messages and no
// halt, or of all where it is "", so that nothing is applied over them meanwhile. It
// returns which; a dry run puts none back.
func (s *scope) putHaltsBack(ctx context.Context, aggregate string) ([]string, error) {
	var only []string
	if aggregate != "" {
		only = []string{aggregate}
	}
	if !s.flags.DryRun {
		return delivery.Rehalt(ctx, s.store, s.store, true, only...)
	}
	events, err := s.store.Unhalted(ctx, only...)
	var found []string
	for i := range events {
		found = append(found, events[i].AggregateID)
	}
	return found, err
}

// halted are the aggregates that a redrive is for: those that are halted, and those
// whose halts are put back. It is an error where the one that is asked for is not
// among them.
func (s *scope) halted(ctx context.Context, aggregate string, putBack []string) ([]string, error) {
	if aggregate == "" {
		halts, err := s.store.List(ctx, 1<<30)
		return slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(slices.Clip(putBack), maps.Keys(halts))))), err
	}
	halt, err := s.store.Halted(ctx, aggregate)
	if err == nil && halt == "" && len(putBack) == 0 {
		err = fmt.Errorf("aggregate %q is not halted in the group %q of %q: see projector parked list", aggregate, s.cfg.Group, s.cfg.Database)
	}
	return []string{aggregate}, err
}

// rehearseAll rehearses redrives, and counts those that would stop.
func (s *scope) rehearseAll(ctx context.Context, aggregates []string) (halted int, err error) {
	for _, aggregate := range aggregates {
		lifted, err := s.rehearse(ctx, aggregate)
		if err != nil {
			return halted, err
		}
		if !lifted {
			halted++
		}
	}
	return halted, nil
}

// rehearsed is what a redrive would do, as far as that shows without a write.
type rehearsed struct {
	AggregateID string `json:"aggregate"`
	DryRun      bool   `json:"dry_run"`
	// WouldApply counts the messages that the projections make writes of.
	WouldApply    int    `json:"would_apply"`
	PassedBy      int    `json:"would_pass_by"`
	FailedEventID string `json:"failed_event_id,omitempty"`
	Reason        string `json:"reason,omitempty"`
}

// rehearse prints what a redrive would do; false where it would stop.
func (s *scope) rehearse(ctx context.Context, aggregate string) (lifted bool, err error) {
	r := rehearsed{AggregateID: aggregate, DryRun: true}
	rehearsal, failed, reason, err := delivery.Rehearse(ctx, s.projections, s.store, s.gaps(), aggregate)
	if err != nil {
		return false, err
	}
	r.FailedEventID, r.Reason = failed, reason
	err = s.store.Parked(ctx, aggregate, func(p readmodel.ParkedMessage) error {
		if r.Reason != "" {
			return nil
		}
		writes, reason, err := rehearsal.Next(ctx, &delivery.Shelved{Message: p.Message, FollowedBy: p.FollowedBy, Returned: p.Returned, Behind: p.Behind, Foreign: p.Foreign})
		switch {
		case err != nil:
			return err
		case reason != "":
			r.FailedEventID, r.Reason = p.EventID, reason
		case writes > 0:
			r.WouldApply++
		default:
			r.PassedBy++
		}
		return nil
	})
	if printErr := s.lines.Encode(r); err == nil {
		err = printErr
	}
	return r.Reason == "", err
}

// errNotParked tells that there is nothing to show or to discard.
var errNotParked = errors.New("no such message is parked")

// discard removes an aggregate's parked message by its event, or all of them
// where event is "". It prints each whole before it removes it: there is no other
// copy. The halt stays until a redrive.
func (s *scope) discard(ctx context.Context, aggregate, event string) error {
	d := &readmodel.Decision{Command: "parked discard"}
	err := s.parkedOnes(ctx, aggregate, event, d, func(p *readmodel.ParkedMessage) error {
		if !s.flags.DryRun {
			return nil
		}
		return s.lines.Encode(wholeParked{*p, show(p.Message), true})
	})
	if err != nil || s.flags.DryRun {
		return err
	}
	return s.decide(ctx, d, func() error {
		return s.parkedOnes(ctx, aggregate, event, d, func(p *readmodel.ParkedMessage) error {
			if err := s.lines.Encode(wholeParked{*p, show(p.Message), false}); err != nil {
				return err
			}
			_, err := s.store.Unpark(ctx, &contract.Event{AggregateID: p.AggregateID, Sequence: p.Sequence, ID: p.EventID})
			return err
		})
	})
}

// parkedOnes calls each for an aggregate's parked message of an event, or for all
// where event is "", and has the decision name them.
func (s *scope) parkedOnes(ctx context.Context, aggregate, event string, d *readmodel.Decision, each func(*readmodel.ParkedMessage) error) error {
	d.About, d.Count = nil, 0
	err := s.store.Parked(ctx, aggregate, func(p readmodel.ParkedMessage) error {
		if event != "" && p.EventID != event {
			return nil
		}
		if p.Foreign != "" {
			return fmt.Errorf("%w: event %q: %s", errOutOfScope, p.EventID, p.Foreign)
		}
		d.Add(readmodel.Named{Aggregate: p.AggregateID, Event: p.EventID, Version: p.Version, Reason: p.Reason})
		return each(&p)
	})
	if err == nil && d.Count == 0 {
		err = errNotParked
	}
	return err
}
