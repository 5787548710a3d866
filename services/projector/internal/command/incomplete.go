package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/readmodel"
)

// errNoLack makes the exit status tell that an aggregate is not listed.
var errNoLack = errors.New("lacks nothing that was resent")

func incompleteCommands() *cobra.Command {
	group := &cobra.Command{Use: "incomplete", Short: "look at aggregates that lack what was resent of them, because they began later here"}
	accept := cli.OrAll(&cobra.Command{
		Use: "accept AGGREGATE | --all", Short: "let aggregates begin where they do, without what was before",
	}, 0, 1, "all of them")
	group.AddCommand(&cobra.Command{
		Use: "list", Short: "print them, by projection, with where each begins and what it lacks",
		RunE: looking(func(ctx context.Context, s *scope, _ []string) error {
			if err := s.inhabited(ctx); err != nil {
				return err
			}
			return s.store.Lacks(ctx, "", func(l readmodel.Lack) error { return s.lines.Encode(l) })
		}),
	}, changing(accept, func(ctx context.Context, s *scope, args []string) error { return s.acceptLacks(ctx, args) }))
	return group
}

// acceptLacks lets an aggregate begin where it does, in every projection; all where none
// is given.
func (s *scope) acceptLacks(ctx context.Context, aggregates []string) error {
	var some []readmodel.Lack
	d := &readmodel.Decision{Command: "incomplete accept"}
	err := s.store.Lacks(ctx, "", func(l readmodel.Lack) error {
		if len(aggregates) == 0 || l.Aggregate == aggregates[0] {
			some = append(some, l)
			d.Add(readmodel.Named{Aggregate: l.Aggregate, Reason: fmt.Sprintf("projection %q begins it at %s, and lacks %s to %s", l.Projection, l.First, l.Missing, l.Latest)})
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(some) == 0 && len(aggregates) > 0:
		return fmt.Errorf("%q %w: see projector incomplete list", aggregates[0], errNoLack)
	case len(some) > 0 && !s.flags.DryRun:
		err = s.decide(ctx, d, func() error {
			for i := range some {
				if err := s.store.AcceptLack(ctx, &some[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return err
	}
	for _, l := range some {
		if err := s.lines.Encode(l); err != nil {
			return err
		}
	}
	return nil
}
