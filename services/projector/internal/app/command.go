package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"changerelay/services/projector/internal/admin"
	"changerelay/services/projector/internal/settings"
)

// ErrUsage means that arguments or configuration are wrong, and that it has
// been said what.
var ErrUsage = errors.New("wrong usage")

const usage = `projector applies the changes of a Service Bus subscription to read models in MongoDB.

  projector                                  run until SIGTERM or SIGINT
  projector validate FILE                    check a file of projections
  projector try FILE --event FILE            print the updates that an event would make, without any server
  projector parked list [AGGREGATE]          print the parked messages
  projector parked show AGGREGATE            print them whole
  projector parked redrive AGGREGATE|--all [--accept-gaps] [--accept-unfollowed]
                                             apply parked messages in order, and lift the halt; where the
                                             projectors have ON_GAP=wait it stops before a missing version, and
                                             --accept-gaps goes on; --accept-unfollowed takes
                                             events away that no projection follows any more
  projector parked discard AGGREGATE EVENT|--all
                                             remove parked messages, without applying them, and print them whole
  projector halts resume                     go on with the aggregates that are halted, where HALT_LIMIT has stopped the projectors
  projector dlq list                         print the dead-lettered messages
  projector dlq show NUMBER                  print one whole, by its sequence number
  projector dlq redrive NUMBER|--all         put dead-lettered messages back in the order of their aggregates, or say why that cannot be
  projector dlq discard NUMBER|--all         remove dead-lettered messages
  projector versions                         print the versions of the projections that PROJECTIONS declares, and which one readers see
  projector switch NAME --to VERSION [--wait TIME] [--force] [--dry-run]
                                             have readers see another version, once it has caught up
  projector ledger                           print what operators have decided: what was left out, or accepted unproven
  projector move [--dry-run]                 make the environment's group, topic and subscription those of its read collections,
                                             once the projectors that they were of are stopped
  projector setup                            create the collections and indexes of the read database, with a role that may
  projector doctor [--json]                  look at the real subscription and read database, and say what is wrong and how to
                                             mend it; exit status 1 on findings
  projector health                           ask the projector in the same container whether it is live; exit status 0 or 1
  projector --help                           print this
  projector --version                        print the version

Commands print JSON, one object a line (doctor only with --json, which every command takes), and are safe beside running replicas.
Those that change something (redrive, discard, resume, switch, move, setup) take --dry-run, which prints what they would do.
redrive, discard, resume and switch are refused where topic, subscription, group or projections are not those of the projectors;
--other-projections lets the projections differ. parked list and versions fail where they find nothing and no projector is known.
Exit status: 0 done, 1 refused, failed or not found, 2 wrong arguments or settings. Settings come from the environment.

`

// Command does what the arguments ask for.
func Command(ctx context.Context, given []string, version string, stdout, stderr io.Writer) error {
	args, asJSON := withoutJSON(given)
	switch {
	case len(args) == 0:
		return serve(ctx, version, stderr)
	case len(args) == 1 && (args[0] == "--help" || args[0] == "-h"):
		fmt.Fprint(stdout, usage)
		return settings.Usage(stdout, &Config{})
	case len(args) == 1 && args[0] == "--version":
		_, err := fmt.Fprintln(stdout, "projector", version)
		return err
	case len(args) == 1 && args[0] == "health":
		return health(ctx, stderr)
	case args[0] == "setup":
		if rest, flags, ok := takeFlags(args[1:], "--dry-run"); ok && len(rest) == 0 {
			return setUp(ctx, stdout, stderr, flags)
		}
	case args[0] == "move":
		if rest, flags, ok := takeFlags(args[1:], "--dry-run"); ok && len(rest) == 0 {
			return move(ctx, stdout, stderr, flags)
		}
	case len(args) == 1 && args[0] == "ledger":
		return onScope(ctx, stdout, stderr, func(ctx context.Context, s *scope) error { return s.listDecisions(ctx) })
	case len(args) == 1 && args[0] == "doctor":
		return Examine(ctx, stdout, stderr, asJSON, azcore.ClientOptions{})
	case len(args) == 2 && args[0] == "validate":
		return validate(args[1], stdout)
	case len(args) == 4 && args[0] == "try" && args[2] == "--event":
		return try(ctx, args[1], args[3], stdout)
	case len(args) >= 2 && args[0] == "parked":
		if command := parkedCommand(args[1], args[2:]); command != nil {
			return onScope(ctx, stdout, stderr, command)
		}
	case len(args) >= 2 && args[0] == "halts" && args[1] == "resume":
		if rest, flags, ok := takeFlags(args[2:], "--dry-run", "--other-projections"); ok && len(rest) == 0 {
			return onScope(ctx, stdout, stderr, changing(flags, func(ctx context.Context, s *scope) error { return s.resume(ctx) }))
		}
	case args[0] == "versions" || args[0] == "switch":
		if command := versionsCommand(args[0], args[1:]); command != nil {
			return onScope(ctx, stdout, stderr, command)
		}
	case len(args) >= 2 && args[0] == "dlq" && (args[1] == "redrive" || args[1] == "discard"):
		if flags, command, ok := deadChange(args[1], args[2:]); ok {
			return onBoth(ctx, stdout, stderr, flags, command)
		}
	case len(args) >= 2 && args[0] == "dlq":
		if command := deadCommand(args[1], args[2:]); command != nil {
			return onDeadLetters(ctx, stdout, stderr, command)
		}
	}
	fmt.Fprintf(stderr, "projector: unknown arguments %q\n\n%s", given, usage)
	return ErrUsage
}

// withoutJSON takes --json out of a command's arguments: every command takes it,
// and prints JSON.
func withoutJSON(given []string) (args []string, asJSON bool) {
	if len(given) == 0 || strings.HasPrefix(given[0], "-") {
		return given, false
	}
	args = slices.DeleteFunc(slices.Clone(given), func(arg string) bool { return arg == "--json" })
	return args, len(args) < len(given)
}

// healthTimeout is how long a live process may take to say so.
const healthTimeout = 3 * time.Second

func health(ctx context.Context, stderr io.Writer) error {
	cfg, _, err := LoadConfig()
	if err != nil {
		settings.Report(stderr, "projector", err)
		return ErrUsage
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	return admin.CheckHealth(ctx, cfg.AdminAddr)
}

// parkedCommand is the command on parked messages that the arguments name, or nil.
func parkedCommand(name string, args []string) func(context.Context, *scope) error {
	allowed := map[string][]string{
		"redrive": {"--dry-run", "--other-projections", "--accept-gaps", "--accept-unfollowed"},
		"discard": {"--dry-run", "--other-projections"},
	}
	args, flags, ok := takeFlags(args, allowed[name]...)
	if !ok {
		return nil
	}
	switch {
	case name == "list" && len(args) == 0:
		return func(ctx context.Context, s *scope) error { return s.list(ctx, "") }
	case len(args) == 0 || args[0] == "":
		return nil
	case name == "list" && len(args) == 1:
		return func(ctx context.Context, s *scope) error { return s.list(ctx, args[0]) }
	case name == "show" && len(args) == 1:
		return func(ctx context.Context, s *scope) error { return s.show(ctx, args[0]) }
	case name == "redrive" && len(args) == 1:
		return changing(flags, func(ctx context.Context, s *scope) error { return s.redrive(ctx, unlessAll(args[0])) })
	case name == "discard" && len(args) == 2 && args[0] != "--all" && args[1] != "":
		return changing(flags, func(ctx context.Context, s *scope) error { return s.discard(ctx, args[0], unlessAll(args[1])) })
	}
	return nil
}

// unlessAll is the argument, or "" for --all.
func unlessAll(arg string) string {
	if arg == "--all" {
		return ""
	}
	return arg
}

func serve(ctx context.Context, version string, stderr io.Writer) error {
	cfg, projections, err := LoadConfig()
	if err != nil {
		settings.Report(stderr, "projector", err)
		return ErrUsage
	}
	a, err := New(ctx, cfg, projections, version, stderr)
	if err != nil {
		return err
	}
	// As long as the service runs.
	defer runtime.KeepAlive(cfg.paceCollector())
	return a.Run(ctx)
}
