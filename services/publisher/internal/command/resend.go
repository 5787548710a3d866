package command

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/cli"
	"changerelay/services/publisher/internal/mongostate"
	"changerelay/services/publisher/internal/resend"
)

// defaultRate is how many documents a second are sent again unless it is said.
const defaultRate = 500

// resendFlags are the arguments of a command that begins a resend.
type resendFlags struct {
	selection    resend.Selection
	since, until string
	all, dry     bool
	group        string
	rate         int
	who, why     string
}

func (l loader) resend() *cobra.Command {
	var f resendFlags
	c := &cobra.Command{
		Use: "resend", Short: "send events again, beside the running stream, or look at that and decide about it",
		Long: `Send events again, or in documents mode the present state of documents, beside the
running stream. Which: --aggregate ID, as often as needed, --where FILTER, --since
TIME and --until TIME, or --all. The leader does it, and the next one goes on.

A consumer that has an event takes it for a repeat. Messages say for which --group
they are: other projectors pass them by.`,
	}
	flags := c.Flags()
	flags.StringArrayVar(&f.selection.Aggregates, "aggregate", nil, "the id of an aggregate, as messages have it; may be given several times")
	flags.StringVar(&f.selection.Where, "where", "", "a filter on the source's documents, in Extended JSON")
	flags.StringVar(&f.since, "since", "", "what was written at that time or later, by HEAL_FIELD; an RFC 3339 time")
	flags.StringVar(&f.until, "until", "", "what was written before that time, by HEAL_FIELD; an RFC 3339 time")
	flags.BoolVar(&f.all, "all", false, "everything")
	flags.StringVar(&f.group, "group", "", "the READMODEL_GROUP that it is for; everybody where it is not given")
	flags.IntVar(&f.rate, "rate", defaultRate, "most documents a second, of each partition; 0 is as fast as it goes")
	flags.StringVar(&f.why, "why", "", "the reason, which is kept; needed unless --dry-run is given")
	flags.StringVar(&f.who, "who", cli.Operator(), "who asks for it")
	flags.BoolVar(&f.dry, "dry-run", false, "say what it would do, change nothing")
	c.RunE = l.run(func(ctx context.Context, call Call, _ []string) error {
		if err := f.check(); err != nil {
			return err
		}
		return beginResend(ctx, call, f)
	})
	c.AddCommand(
		l.resendStatus(),
		l.decideResend("pause", "let it rest; what is sent stays sent", resend.Paused, resend.Running),
		l.decideResend("resume", "go on with one that is paused", resend.Running, resend.Paused),
		l.decideResend("cancel", "end it for good", resend.Cancelled, resend.Beginning, resend.Running, resend.Paused),
	)
	return c
}

// check completes the selection, and returns what is wrong with the arguments.
func (f *resendFlags) check() error {
	for _, at := range []struct {
		flag, text string
		to         *time.Time
	}{{"since", f.since, &f.selection.Since}, {"until", f.until, &f.selection.Until}} {
		if at.text == "" {
			continue
		}
		parsed, err := time.Parse(time.RFC3339, at.text)
		if err != nil {
			return cli.Usagef("resend: --%s is %q, not an RFC 3339 time", at.flag, at.text)
		}
		*at.to = parsed.UTC()
	}
	s, kinds := f.selection, 0
	for _, given := range []bool{len(s.Aggregates) > 0, s.Where != "", !s.Since.IsZero() || !s.Until.IsZero(), f.all} {
		if given {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return cli.Usagef("resend needs one of --aggregate, --where, --since or --until, and --all, or a command: status, pause, resume, cancel")
	case !s.Since.IsZero() && !s.Until.IsZero() && !s.Since.Before(s.Until):
		return cli.Usagef("resend: --since %s is not before --until %s", f.since, f.until)
	case f.rate < 0:
		return cli.Usagef("resend: --rate is %d, and no rate", f.rate)
	case f.why == "" && !f.dry:
		return cli.Usagef("resend: say why, with --why TEXT: it is kept in resends")
	}
	named := contract.Resend{ID: newResendID(), Group: f.group}
	if err := named.Validate(); err != nil {
		return cli.Usagef("resend: --group: %w", err)
	}
	if slices.Contains(s.Aggregates, "") {
		return cli.Usagef("resend: --aggregate is empty")
	}
	return nil
}

// newResendID names a resend in a few characters, which every message has. No two are
// likely to be the same, in this state database or another.
func newResendID() string { return strings.ToLower(rand.Text()[:12]) }

func (l loader) resendStatus() *cobra.Command {
	var all bool
	var since string
	c := &cobra.Command{Use: "status", Short: "how far the last one is"}
	c.Flags().BoolVar(&all, "all", false, "those before it, too")
	c.Flags().StringVar(&since, "since", "", "those that have sent something since, and how to send it again, as where the topic is gone; an RFC 3339 time")
	c.RunE = l.run(func(ctx context.Context, call Call, _ []string) error {
		if since == "" {
			return showResends(ctx, call, all)
		}
		at, err := time.Parse(time.RFC3339, since)
		if err != nil {
			return cli.Usagef("resend status: --since is %q, not an RFC 3339 time", since)
		}
		return showResendsSince(ctx, call, at)
	})
	return c
}

func (l loader) decideResend(name, does string, to resend.State, from ...resend.State) *cobra.Command {
	var who, why string
	var dry bool
	c := &cobra.Command{Use: name, Short: does}
	c.Flags().StringVar(&why, "why", "", "the reason, which is kept")
	c.Flags().StringVar(&who, "who", cli.Operator(), "who decides")
	c.Flags().BoolVar(&dry, "dry-run", false, "say what it would do, change nothing")
	c.RunE = l.run(func(ctx context.Context, call Call, _ []string) error {
		ctx, cancel := context.WithTimeout(ctx, commandTimeout)
		defer cancel()
		return withState(ctx, call.Config, func(state *mongostate.Database) error {
			if err := call.Config.Checked(ctx, state); err != nil {
				return err
			}
			resends := state.Resends(call.Config.StreamName, call.Config.Partitions)
			last, err := resends.Latest(ctx)
			if err != nil {
				return err
			}
			if !slices.Contains(from, last.State) {
				return fmt.Errorf("resend %s is %s, and cannot be %s", last.ID, last.State, to)
			}
			if !dry {
				changed, err := resends.Decide(ctx, last.ID, from, to, who, why)
				if err != nil {
					return err
				}
				if !changed {
					return fmt.Errorf("resend %s was changed at the same time: look at it with publisher resend status", last.ID)
				}
			}
			if last, err = resends.Latest(ctx); err != nil {
				return err
			}
			view := viewResend(&last, &call.Config)
			view.DryRun = dry
			return printView(call.Stdout, call.JSON, view)
		})
	})
	return c
}
