// Package command is the publisher's command line: what operators see of a stream,
// and decide about it. Each command finds the stream in the state database itself,
// and refuses what does not belong to it.
package command

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"changerelay/services/publisher/internal/admin"
	"changerelay/services/publisher/internal/app"
	"changerelay/services/publisher/internal/cli"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/mongostate"
)

// Call is one call of a command.
type Call struct {
	Config config.Config
	// JSON asks commands for JSON that print text otherwise.
	JSON           bool
	Stdout, Stderr io.Writer
}

// Program is the publisher's command line. load reads its settings.
func Program(version string, load func() (config.Config, error)) cli.Program {
	l := loader(load)
	return cli.Program{
		Name: "publisher", Does: "publisher sends the changes of MongoDB collections to an Azure Service Bus topic.",
		Version: version, Settings: &config.Config{},
		Serve: func(ctx context.Context, stderr io.Writer) error {
			config, err := load()
			if err != nil {
				return cli.Misconfigured(err)
			}
			if err := config.CheckMemory(); err != nil {
				return cli.Misconfigured(err)
			}
			return app.Publish(ctx, config, version, stderr)
		},
		Commands: []*cobra.Command{
			l.command("status", "who leads, in which term, how far the checkpoint is behind; from any machine", showStatus),
			l.checkpoint(),
			l.adopt(),
			l.parked(),
			l.repartition(),
			l.resend(),
			l.events(),
			l.command("setup", "create the collections and indexes of the state database, with a role that may", setUp),
			l.command("doctor", "look at the real topic, source and state, and say what is wrong and how to mend it; exit status 1 on findings", examine),
			l.command("health", "ask the publisher in the same container whether it is live", health),
		},
	}
}

// loader makes commands that know the settings.
type loader func() (config.Config, error)

// run is a command's work with the settings.
func (l loader) run(work func(ctx context.Context, call Call, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		config, err := l()
		if err != nil {
			return cli.Misconfigured(err)
		}
		return work(c.Context(), Call{Config: config, JSON: cli.JSON(c), Stdout: c.OutOrStdout(), Stderr: c.ErrOrStderr()}, args)
	}
}

// command is one without arguments.
func (l loader) command(name, does string, work func(ctx context.Context, call Call) error) *cobra.Command {
	return &cobra.Command{Use: name, Short: does, RunE: l.run(func(ctx context.Context, call Call, _ []string) error { return work(ctx, call) })}
}

func (l loader) checkpoint() *cobra.Command {
	group := &cobra.Command{
		Use: "checkpoint", Short: "show where the stream's checkpoints are, or decide where it goes on",
		Long: `Show where the stream's checkpoints are, or decide where it goes on.

set, reset and accept are refused while a publisher leads that is not halted,
unless --force is given, and keep in checkpoint_log who did it and why.`,
	}
	group.AddCommand(
		l.command("show", "where the checkpoints are, of whatever number of partitions they are", showCheckpoint),
		l.move(moveSet, &cobra.Command{
			Use: moveSet + " PLACE", Short: "move them to an RFC 3339 time, to a position as show prints it, or to a resume token", Args: cli.Takes(1, 1),
		}),
		l.move(mongostate.Reset, &cobra.Command{Use: mongostate.Reset, Short: "forget where they are: START_AT decides where to begin"}),
		l.move(mongostate.Accept, &cobra.Command{Use: mongostate.Accept, Short: "go on from where they are, with the source and the settings as they are now, after a halt"}),
	)
	return group
}

// move completes a command that decides where the stream goes on.
func (l loader) move(action string, c *cobra.Command) *cobra.Command {
	var m moveFlags
	flags := c.Flags()
	flags.StringVar(&m.why, "why", "", "the reason, which is kept; needed unless --dry-run is given")
	flags.StringVar(&m.who, "who", cli.Operator(), "who decides")
	flags.BoolVar(&m.force, "force", false, "although a publisher leads that is not halted")
	flags.BoolVar(&m.dry, "dry-run", false, "say what it would do, change nothing")
	flags.StringVar(&m.partition, "partition", "", "which partition it is about, a number or all; otherwise those that are halted, or all where none is")
	if action != mongostate.Accept {
		flags.BoolVar(&m.fresh, "new", false, "although nothing is known of the stream")
	}
	if action == moveSet {
		flags.BoolVar(&m.giveUp, "give-up-copy", false, "in the middle of a copy, whose rest is not sent then")
	}
	c.RunE = l.run(func(ctx context.Context, call Call, args []string) error {
		if m.why == "" && !m.dry {
			return cli.Usagef("checkpoint %s: say why, with --why TEXT: it is kept in checkpoint_log", action)
		}
		switch action {
		case moveSet:
			return setCheckpoint(ctx, call, m, args[0])
		case mongostate.Reset:
			return resetCheckpoint(ctx, call, m)
		default:
			return moveCheckpoints(ctx, call, action, m, nil)
		}
	})
	return c
}

func (l loader) parked() *cobra.Command {
	group := &cobra.Command{Use: "parked", Short: "look at the changes that could not be sent, send them, or give them up"}
	group.AddCommand(l.listParked(), &cobra.Command{
		Use: "show ID", Short: "one of them, whole, and what was done with it", Args: cli.Takes(1, 1),
		RunE: l.run(func(ctx context.Context, call Call, args []string) error { return showParked(ctx, call, args[0]) }),
	}, l.replayParked(), &cobra.Command{
		Use: "discard ID...", Short: "give them up; they stay in the database, marked so", Args: cli.Takes(1, -1), RunE: l.run(discardParked),
	}, l.purgeParked(), l.reopenParked())
	return group
}

func (l loader) listParked() *cobra.Command {
	var all bool
	c := &cobra.Command{Use: "list", Short: "list them, oldest first, as one JSON object a line"}
	c.Flags().BoolVar(&all, "all", false, "also those that were replayed or discarded")
	c.RunE = l.run(func(ctx context.Context, call Call, _ []string) error { return listParked(ctx, call, all) })
	return c
}

func (l loader) replayParked() *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use: "replay ID... | --all", Short: "send them now, in the order of their aggregates",
		Long: `Send them now, in the order of their aggregates, by the settings of this process.

Refused where those give messages another aggregate or another place in it than the
publishers do, unless --accept-settings says that it is meant.`,
	}
	c.Flags().BoolVar(&f.accept, "accept-settings", false, "although FIELD_AGGREGATE_ID, FIELD_VERSION or DOCUMENT_AGGREGATE_ID is another than the publishers'; the ledger says so")
	c.Flags().StringVar(&f.why, "why", "", "the reason, which the ledger keeps; needed with --accept-settings")
	c.Flags().StringVar(&f.who, "who", cli.Operator(), "who decides")
	c.RunE = l.run(func(ctx context.Context, call Call, ids []string) error {
		if f.accept && f.why == "" {
			return cli.Usagef("parked replay: say why, with --why TEXT: the ledger keeps it with --accept-settings")
		}
		return replayParked(ctx, call, f, ids)
	})
	return cli.OrAll(c, 0, -1, "all that are parked")
}

func (l loader) purgeParked() *cobra.Command {
	var age time.Duration
	var dry bool
	c := &cobra.Command{Use: "purge --older-than AGE", Short: "remove those that were replayed or discarded longer ago"}
	c.Flags().DurationVar(&age, "older-than", 0, "how long ago, such as 720h")
	c.Flags().BoolVar(&dry, "dry-run", false, "say how many, remove none")
	c.RunE = l.run(func(ctx context.Context, call Call, _ []string) error {
		if age <= 0 {
			return cli.Usagef("parked purge needs --older-than AGE, such as 720h")
		}
		return purgeParked(ctx, call, age, dry)
	})
	return c
}

func (l loader) reopenParked() *cobra.Command {
	var since string
	c := &cobra.Command{Use: "reopen --replayed-since TIME", Short: "park those again that were replayed since, where the topic is gone with what it held"}
	c.Flags().StringVar(&since, "replayed-since", "", "an RFC 3339 time")
	c.RunE = l.run(func(ctx context.Context, call Call, _ []string) error {
		at, err := time.Parse(time.RFC3339, since)
		if err != nil {
			return cli.Usagef("parked reopen needs --replayed-since TIME, an RFC 3339 time")
		}
		return reopenParked(ctx, call, at)
	})
	return c
}

func (l loader) repartition() *cobra.Command {
	var from int
	var dry bool
	c := &cobra.Command{Use: "repartition", Short: "carry the checkpoints over to another number of PARTITIONS"}
	c.Flags().IntVar(&from, "from", 0, "the number of partitions whose checkpoints are right, where there are those of several")
	c.Flags().BoolVar(&dry, "dry-run", false, "say what it would do, change nothing")
	c.RunE = l.run(func(ctx context.Context, call Call, _ []string) error {
		if from < 0 {
			return cli.Usagef("repartition: --from is %d, and no number of partitions", from)
		}
		return repartition(ctx, call, from, dry)
	})
	return c
}

// healthTimeout is how long a live process may take to say so.
const healthTimeout = 3 * time.Second

func health(ctx context.Context, call Call) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	return admin.CheckHealth(ctx, call.Config.AdminAddr)
}
