package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/readmodel"
)

// sourceFlags are the arguments of a command about two sources.
type sourceFlags struct{ from, to, why string }

func sourcesCommands() *cobra.Command {
	group := &cobra.Command{Use: "sources", Short: "say which source's events go on from those of which other, as of a collection that was renamed or moved"}
	group.AddCommand(&cobra.Command{
		Use: "list", Short: "print what was said, and how many aggregates are halted at an event of another source",
		RunE: looking(func(ctx context.Context, s *scope, _ []string) error { return s.listSources(ctx) }),
	}, aboutSources(&cobra.Command{
		Use: "continue --from SOURCE --to SOURCE", Short: "apply the events of --to as those that follow the ones of --from, for the whole group",
		Long: `Apply the events of the source --to as those that follow the ones of --from, for
the whole group. A source is /DATABASE/COLLECTION, as messages have it. One order of
sequences is taken to go through both: an event of --to that is not above what is
applied of --from is a repeat. Then projector parked redrive --all goes on with the
aggregates that are halted for it.`,
	}, (*scope).continueSource), aboutSources(&cobra.Command{
		Use: "separate --from SOURCE --to SOURCE", Short: "take that back; what is applied stays applied",
	}, (*scope).separateSource))
	return group
}

// aboutSources completes a command that changes what is said of two sources.
func aboutSources(c *cobra.Command, change func(s *scope, ctx context.Context, f sourceFlags) error) *cobra.Command {
	var f sourceFlags
	c = changing(c, func(ctx context.Context, s *scope, _ []string) error { return change(s, ctx, f) })
	c.Flags().StringVar(&f.from, "from", "", "the source that was before")
	c.Flags().StringVar(&f.to, "to", "", "the source that is now")
	c.Flags().StringVar(&f.why, "why", "", "the reason, which is kept")
	c.Args = func(c *cobra.Command, args []string) error {
		for _, source := range []string{f.from, f.to} {
			if strings.Count(source, "/") != 2 || !strings.HasPrefix(source, "/") {
				return cli.Usagef("sources %s: --from and --to are sources, such as /shop/events, not %q", c.Name(), source)
			}
		}
		if f.from == f.to || f.why == "" {
			return cli.Usagef("sources %s needs two sources, and a reason, with --why TEXT", c.Name())
		}
		return cli.Takes(0, 0)(c, args)
	}
	return c
}

// sourcesView is what projector sources list prints.
type sourcesView struct {
	Continuations []readmodel.Continuation `json:"continuations"`
	// Halted counts the aggregates that are halted at an event of another source.
	Halted int `json:"halted"`
}

func (s *scope) listSources(ctx context.Context) error {
	if err := s.inhabited(ctx); err != nil {
		return err
	}
	all, err := s.store.Continuations(ctx)
	if err != nil {
		return err
	}
	halted, err := s.store.Halts.HaltedFor(ctx, readmodel.OtherSource)
	if err != nil {
		return err
	}
	return s.lines.Encode(sourcesView{append([]readmodel.Continuation{}, all...), len(halted)})
}

// sourcesChanged is what a command about two sources prints.
type sourcesChanged struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Changed is false where it was said before, or was not.
	Changed bool `json:"changed"`
	// Halted counts the aggregates that are halted at an event of another source.
	Halted int    `json:"halted"`
	Next   string `json:"next,omitempty"`
	DryRun bool   `json:"dry_run,omitempty"`
}

func (s *scope) continueSource(ctx context.Context, f sourceFlags) error {
	return s.changeSources(ctx, f, "continue", func() (bool, error) {
		return s.store.Continue(ctx, readmodel.Continuation{From: f.from, To: f.to, Why: f.why, By: cli.Operator()})
	})
}

func (s *scope) separateSource(ctx context.Context, f sourceFlags) error {
	return s.changeSources(ctx, f, "separate", func() (bool, error) { return s.store.Separate(ctx, f.from, f.to) })
}

func (s *scope) changeSources(ctx context.Context, f sourceFlags, name string, change func() (bool, error)) error {
	halted, err := s.store.Halts.HaltedFor(ctx, readmodel.OtherSource)
	if err != nil {
		return err
	}
	done := sourcesChanged{From: f.from, To: f.to, Halted: len(halted), DryRun: s.flags.DryRun}
	if len(halted) > 0 && name == "continue" {
		done.Next = "projector parked redrive --all"
	}
	if !s.flags.DryRun {
		d := &readmodel.Decision{Command: fmt.Sprintf("sources %s --from %s --to %s", name, f.from, f.to), Why: []string{f.why}}
		err := s.decide(ctx, d, func() (err error) {
			done.Changed, err = change()
			return err
		})
		if err != nil {
			return err
		}
	}
	return s.lines.Encode(done)
}
