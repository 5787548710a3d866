package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/shell"
)

func skippedCommands() *cobra.Command {
	group := &cobra.Command{Use: "skipped", Short: "look at events that projections have skipped, and lack"}
	group.AddCommand(&cobra.Command{
		Use: "list [AGGREGATE]", Short: "print the records of skipped events, each with what mends its document", Args: cli.Takes(0, 1),
		RunE: looking(func(ctx context.Context, s *scope, args []string) error { return s.listSkipped(ctx, argument(args, 0)) }),
	}, &cobra.Command{
		Use: "show AGGREGATE", Short: "print those of an aggregate with their whole messages", Args: cli.Takes(1, 1),
		RunE: looking(func(ctx context.Context, s *scope, args []string) error { return s.showSkipped(ctx, args[0]) }),
	}, changing(cli.OrAll(&cobra.Command{
		Use: "accept AGGREGATE EVENT | --all", Short: "let documents lack what was skipped: remove the records, and print them whole",
	}, 1, 2, "all of the aggregate's"), func(ctx context.Context, s *scope, args []string) error {
		return s.acceptSkipped(ctx, args[0], argument(args, 1))
	}))
	return group
}

// argument is the nth argument, "" where there is none.
func argument(args []string, n int) string {
	if n < len(args) {
		return args[n]
	}
	return ""
}

// listedSkip is a record as it is listed.
type listedSkip struct {
	readmodel.SkippedEvent
	// Mend is how the document comes to have the event, once the projection is mended.
	Mend string `json:"repair"`
}

// wholeSkip is a record as it is printed whole. Message is absent where it is too large
// to be kept, and in the dead letters.
type wholeSkip struct {
	listedSkip
	Message *shownMessage `json:"message,omitempty"`
	// DryRun tells that accept would have removed it.
	DryRun bool `json:"dry_run,omitempty"`
}

// listSkipped prints the records of an aggregate, or of all where it is "". None are good
// news only where there is a projector.
func (s *scope) listSkipped(ctx context.Context, aggregate string) error {
	found := false
	err := s.store.Skipped.Each(ctx, aggregate, false, func(e readmodel.SkippedEvent) error {
		found = true
		return s.lines.Encode(listedSkip{e, s.mends(&e)})
	})
	if err != nil || found {
		return err
	}
	return s.inhabited(ctx)
}

// mends says what gives a document the event that it lacks. Nothing does so before the
// projection can apply it.
func (s *scope) mends(e *readmodel.SkippedEvent) string {
	name, keyed := e.Projection, false
	for _, p := range s.projections {
		if p.Name() == e.Projection {
			keyed = projection.Keyed(p)
			if v, versioned := projection.VersionOf(p); versioned {
				name = v.Projection
			}
		}
	}
	command := s.anew(name)
	if !keyed {
		command += " --aggregate " + shell.Word(e.AggregateID)
	}
	command += " --why 'it was skipped' --publisher publisher"
	if e.Action == projection.DeadLetter {
		command = "projector dlq redrive --all; where something later is applied " + command
	}
	return command
}

// errNotSkipped tells that there is nothing to show or to accept.
var errNotSkipped = errors.New("no such event is skipped")

// showSkipped prints an aggregate's records whole.
func (s *scope) showSkipped(ctx context.Context, aggregate string) error {
	return s.skippedOnes(ctx, aggregate, "", func(e *readmodel.SkippedEvent) error { return s.printSkipped(e, false) })
}

func (s *scope) printSkipped(e *readmodel.SkippedEvent, dry bool) error {
	whole := wholeSkip{listedSkip: listedSkip{*e, s.mends(e)}, DryRun: dry}
	if e.Message != nil {
		shown := show(*e.Message)
		whole.Message = &shown
	}
	return s.lines.Encode(whole)
}

// skippedOnes calls each for an aggregate's records, of one event or of all where it is "".
func (s *scope) skippedOnes(ctx context.Context, aggregate, event string, each func(*readmodel.SkippedEvent) error) error {
	found := false
	err := s.store.Skipped.Each(ctx, aggregate, true, func(e readmodel.SkippedEvent) error {
		if event != "" && e.EventID != event {
			return nil
		}
		found = true
		return each(&e)
	})
	if err == nil && !found {
		err = errNotSkipped
	}
	return err
}

// acceptSkipped removes records, of one event or of all of the aggregate. It prints each
// whole before: there may be no other copy here. What is skipped after the ledger has
// named them stays.
func (s *scope) acceptSkipped(ctx context.Context, aggregate, event string) error {
	d := &readmodel.Decision{Command: "skipped accept"}
	type key struct{ event, projection string }
	named := map[key]bool{}
	err := s.skippedOnes(ctx, aggregate, event, func(e *readmodel.SkippedEvent) error {
		if s.flags.DryRun {
			return s.printSkipped(e, true)
		}
		named[key{e.EventID, e.Projection}] = true
		d.Add(namedSkip(e))
		return nil
	})
	if err != nil || s.flags.DryRun {
		return err
	}
	return s.decide(ctx, d, func() error {
		d.About, d.Count = nil, 0
		return s.skippedOnes(ctx, aggregate, event, func(e *readmodel.SkippedEvent) error {
			if !named[key{e.EventID, e.Projection}] {
				return nil
			}
			if err := s.printSkipped(e, false); err != nil {
				return err
			}
			d.Add(namedSkip(e))
			_, err := s.store.Skipped.Forget(ctx, e)
			return err
		})
	})
}

// namedSkip is a skipped event as the ledger has it.
func namedSkip(e *readmodel.SkippedEvent) readmodel.Named {
	return readmodel.Named{Aggregate: e.AggregateID, Event: e.EventID, Version: e.Version, Reason: fmt.Sprintf("skipped for projection %q: %s", e.Projection, e.Reason)}
}

// skippedBefore are the records of aggregates that are to be rebuilt, of some projections
// by their accounts.
func (s *scope) skippedBefore(ctx context.Context, aggregates []string, accounts map[string]bool) (before []readmodel.SkippedEvent, err error) {
	for _, aggregate := range aggregates {
		err := s.store.Skipped.Each(ctx, aggregate, false, func(e readmodel.SkippedEvent) error {
			if accounts[e.Projection] {
				before = append(before, e)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return before, nil
}

// forgetSkipped removes records of events that documents have by now.
func (s *scope) forgetSkipped(ctx context.Context, records []readmodel.SkippedEvent) (int, error) {
	for i := range records {
		if _, err := s.store.Skipped.Forget(ctx, &records[i]); err != nil {
			return i, err
		}
	}
	return len(records), nil
}
