// Package command is the projector's command line: what operators see of a group of
// projectors, and decide about it. Each command finds the group in the read database
// itself, and refuses what does not belong to it; each decision is in the ledger
// before it is carried out.
package command

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/cobra"

	"changerelay/services/projector/internal/admin"
	"changerelay/services/projector/internal/app"
	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/servicebus"
)

// Program is the projector's command line.
func Program(version string) cli.Program {
	return cli.Program{
		Name: "projector", Does: "projector applies the changes of a Service Bus subscription to read models in MongoDB.",
		Version: version, Settings: &config.Config{},
		Serve: func(ctx context.Context, stderr io.Writer) error { return app.Serve(ctx, version, stderr) },
		Commands: []*cobra.Command{
			{
				Use: "status", Short: "which projectors live, what feeds them, what is halted, parked and decided; from any machine",
				RunE: func(c *cobra.Command, _ []string) error {
					return onScope(c.Context(), io.Discard, func(ctx context.Context, s *scope) error { return s.status(ctx, c.OutOrStdout(), cli.JSON(c)) })
				},
			},
			{
				Use: "validate [FILE]", Short: "check a file of projections, or those of the program and of PROJECTIONS", Args: cli.Takes(0, 1),
				RunE: func(c *cobra.Command, args []string) error {
					return validate(c.Context(), strings.Join(args, ""), c.OutOrStdout())
				},
			},
			tryCommand(),
			parkedCommands(),
			skippedCommands(),
			haltsCommands(),
			deadCommands(),
			sourcesCommands(),
			incompleteCommands(),
			{
				Use: "versions", Short: "print the versions of the projections that PROJECTIONS declares, and which one readers see",
				RunE: looking(func(ctx context.Context, s *scope, _ []string) error { return s.listVersions(ctx) }),
			},
			switchCommand(),
			rebuildCommand(),
			verifyCommand(),
			{
				Use: "ledger", Short: "print what operators have decided: what was left out, or accepted unproven",
				RunE: looking(func(ctx context.Context, s *scope, _ []string) error { return s.listDecisions(ctx) }),
			},
			moveCommand(),
			rehearsable("setup", "create the collections and indexes of the read database, with a role that may", setUp),
			{
				Use: "doctor", Short: "look at the real subscription and read database, and say what is wrong and how to mend it; exit status 1 on findings",
				RunE: func(c *cobra.Command, _ []string) error {
					return Examine(c.Context(), c.OutOrStdout(), cli.JSON(c), azcore.ClientOptions{})
				},
			},
			{
				Use: "health", Short: "ask the projector in the same container whether it is live",
				RunE: func(c *cobra.Command, _ []string) error { return health(c.Context()) },
			},
		},
	}
}

// looking is what a command does that looks at the read database.
func looking(look func(ctx context.Context, s *scope, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		return onScope(c.Context(), c.OutOrStdout(), func(ctx context.Context, s *scope) error { return look(ctx, s, args) })
	}
}

// changing completes a command that changes something, behind the one rule for
// all of them: its topic, subscription, group and projections are those of
// projectors that run or ran.
func changing(c *cobra.Command, change func(ctx context.Context, s *scope, args []string) error) *cobra.Command {
	return admitted(c, (*scope).admit, change)
}

// admitted is changing with a rule of its own.
func admitted(c *cobra.Command, admit func(s *scope, ctx context.Context) error, change func(ctx context.Context, s *scope, args []string) error) *cobra.Command {
	var flags changeFlags
	c.Flags().BoolVar(&flags.DryRun, "dry-run", false, "print what it would do, change nothing")
	c.Flags().BoolVar(&flags.OtherProjections, "other-projections", false, "although the projections are not those of the projectors")
	c.RunE = looking(func(ctx context.Context, s *scope, args []string) error {
		s.flags = flags
		if err := admit(s, ctx); err != nil {
			return err
		}
		return change(ctx, s, args)
	})
	return c
}

func tryCommand() *cobra.Command {
	var event string
	c := &cobra.Command{Use: "try [FILE] --event FILE", Short: "print the updates that an event would make by a file of projections, or by those of the program and of PROJECTIONS, without any server", Args: cli.Takes(0, 1)}
	c.Flags().StringVar(&event, "event", "", "the file of the event")
	c.RunE = func(c *cobra.Command, args []string) error {
		if event == "" {
			return cli.Usagef("try needs --event FILE")
		}
		return try(c.Context(), strings.Join(args, ""), event, c.OutOrStdout(), c.ErrOrStderr())
	}
	return c
}

func parkedCommands() *cobra.Command {
	group := &cobra.Command{Use: "parked", Short: "look at parked messages, apply them in order, or give them up"}
	group.AddCommand(&cobra.Command{
		Use: "list [AGGREGATE]", Short: "print the parked messages", Args: cli.Takes(0, 1),
		RunE: looking(func(ctx context.Context, s *scope, args []string) error { return s.list(ctx, strings.Join(args, "")) }),
	}, &cobra.Command{
		Use: "show AGGREGATE", Short: "print those of an aggregate whole", Args: cli.Takes(1, 1),
		RunE: looking(func(ctx context.Context, s *scope, args []string) error { return s.show(ctx, args[0]) }),
	}, redriveCommand(), discardCommand())
	return group
}

// accepting completes a redrive, which goes on over what is missing where it is told
// to.
func accepting(c *cobra.Command, admit func(s *scope, ctx context.Context) error, redrive func(ctx context.Context, s *scope, args []string) error) *cobra.Command {
	var gaps, unfollowed, lost bool
	c = admitted(c, admit, func(ctx context.Context, s *scope, args []string) error {
		s.flags.AcceptGaps, s.flags.AcceptUnfollowed, s.flags.AcceptLost = gaps, unfollowed, lost
		return redrive(ctx, s, args)
	})
	c.Flags().BoolVar(&gaps, "accept-gaps", false, "go on over missing versions")
	c.Flags().BoolVar(&lost, "accept-lost", false, "take away what later events were applied over, and go on where parked messages are gone")
	c.Flags().BoolVar(&unfollowed, "accept-unfollowed", false, "take events away that no projection follows any more")
	return c
}

func redriveCommand() *cobra.Command {
	return accepting(cli.OrAll(&cobra.Command{
		Use: "redrive AGGREGATE | --all", Short: "apply parked messages in order, and lift the halt",
		Long: `Apply parked messages in order, and lift the halt. Where the projectors have
ON_GAP=wait it stops before a missing version. It stops before a message that
later events were applied over, because its halt was lost, and where parked
messages are gone.`,
	}, 0, 1, "those of all halted aggregates"), (*scope).admit, func(ctx context.Context, s *scope, args []string) error {
		return s.redrive(ctx, strings.Join(args, ""))
	})
}

func discardCommand() *cobra.Command {
	return changing(cli.OrAll(&cobra.Command{
		Use: "discard AGGREGATE EVENT | --all", Short: "remove parked messages without applying them, and print them whole",
	}, 1, 2, "all of the aggregate's"), func(ctx context.Context, s *scope, args []string) error {
		return s.discard(ctx, args[0], strings.Join(args[1:], ""))
	})
}

func haltsCommands() *cobra.Command {
	group := &cobra.Command{Use: "halts", Short: "decide about halted aggregates"}
	group.AddCommand(changing(&cobra.Command{
		Use: "resume", Short: "go on with what is halted and skipped, where HALT_LIMIT or an event has stopped the projectors",
	}, func(ctx context.Context, s *scope, _ []string) error { return s.resume(ctx) }))
	return group
}

func deadCommands() *cobra.Command {
	group := &cobra.Command{Use: "dlq", Short: "look at dead-lettered messages, put them back in order, or remove them"}
	redrive := cli.OrAll(&cobra.Command{
		Use: "redrive NUMBER | --all", Short: "put dead-lettered messages back in the order of their aggregates, or say why that cannot be",
	}, 0, 1, "all of them")
	discard := cli.OrAll(&cobra.Command{Use: "discard NUMBER | --all", Short: "remove dead-lettered messages, and print them whole"}, 0, 1, "all of them")
	group.AddCommand(&cobra.Command{
		Use: "list", Short: "print the dead-lettered messages",
		RunE: func(c *cobra.Command, _ []string) error { return onDeadLetters(c.Context(), c.OutOrStdout(), listDead) },
	}, numbered(&cobra.Command{
		Use: "show NUMBER", Short: "print one whole, by its sequence number", Args: cli.Takes(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			return onDeadLetters(c.Context(), c.OutOrStdout(), func(ctx context.Context, letters *servicebus.DeadLetters, lines *json.Encoder) error {
				number, _ := number(args)
				return showDead(ctx, letters, lines, number)
			})
		},
	}), numbered(accepting(redrive, (*scope).admitDead, deadChange((*scope).returnDead))), numbered(admitted(discard, (*scope).admitDead, deadChange((*scope).discardDead))))
	return group
}

// numbered has a command's arguments checked to be sequence numbers.
func numbered(c *cobra.Command) *cobra.Command {
	takes := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		if err := takes(c, args); err != nil {
			return err
		}
		for _, arg := range args {
			if _, err := strconv.ParseInt(arg, 10, 64); err != nil {
				return cli.Usagef("%s: %q is no sequence number of a message", c.Name(), arg)
			}
		}
		return nil
	}
	return c
}

// number is the sequence number among the arguments of a numbered command, or all.
func number(args []string) (number int64, all bool) {
	for _, arg := range args {
		number, _ = strconv.ParseInt(arg, 10, 64) // it has been checked to be one
	}
	return number, len(args) == 0
}

func switchCommand() *cobra.Command {
	var o switchOptions
	c := changing(&cobra.Command{
		Use: "switch NAME --to VERSION", Short: "have readers see another version, once it has caught up", Args: cli.Takes(1, 1),
	}, func(ctx context.Context, s *scope, args []string) error {
		o.name = args[0]
		return s.switchVersion(ctx, o)
	})
	c.Flags().IntVar(&o.to, "to", 0, "the version")
	c.Flags().DurationVar(&o.wait, "wait", defaultLook, "how long it may take to catch up")
	c.Flags().BoolVar(&o.force, "force", false, "whatever speaks against it")
	takes := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		if o.to <= 0 || o.wait <= 0 {
			return cli.Usagef("switch needs --to VERSION, a number from 1 on, and a --wait of more than 0")
		}
		return takes(c, args)
	}
	return c
}

// rehearsable is a command with --dry-run that is of no scope yet: it makes one.
func rehearsable(name, does string, work func(ctx context.Context, stdout io.Writer, dry bool) error) *cobra.Command {
	var dry bool
	c := &cobra.Command{Use: name, Short: does}
	c.Flags().BoolVar(&dry, "dry-run", false, "print what it would do, change nothing")
	c.RunE = func(c *cobra.Command, _ []string) error { return work(c.Context(), c.OutOrStdout(), dry) }
	return c
}

func moveCommand() *cobra.Command {
	var leave bool
	c := rehearsable("move", "make the environment's group, topic and subscription those of its read collections, once the projectors that they were of are stopped",
		func(ctx context.Context, stdout io.Writer, dry bool) error { return move(ctx, stdout, dry, leave) })
	c.Flags().BoolVar(&leave, "leave-messages", false, "also where messages wait in a subscription that is left, or nobody can say whether some do")
	return c
}

// healthTimeout is how long a live process may take to say so.
const healthTimeout = 3 * time.Second

func health(ctx context.Context) error {
	cfg, _, err := config.Load(ctx)
	if err != nil {
		return cli.Misconfigured(err)
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	return admin.CheckHealth(ctx, cfg.AdminAddr)
}
