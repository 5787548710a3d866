package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"changerelay/services/publisher/internal/admin"
	"changerelay/services/publisher/internal/settings"
)

// ErrUsage is wrapped by what a command returns when its arguments are wrong.
var ErrUsage = errors.New("see publisher --help")

// Command is something that the binary does.
type Command struct {
	// Configured says that it needs the configuration.
	Configured bool
	// Arguments says that more than its name may be given.
	Arguments bool
	// Text says that it prints text unless --json is among the arguments. Others
	// print JSON, whatever is, or nothing.
	Text bool
	Run  func(ctx context.Context, call Call) error
}

// Call is one call of a command. The configuration is empty where the command
// needs none.
type Call struct {
	Config         Config
	Args           []string
	Stdout, Stderr io.Writer
}

// Find returns the command that args name, and what they say beyond its name.
// Every command takes --json.
func Find(version string, args []string) (Command, []string, bool) {
	plain := args
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		plain = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == jsonFlag })
	}
	all := commands(version)
	for n := len(plain); n >= 0; n-- {
		command, known := all[strings.Join(plain[:n], " ")]
		if !known || n < len(plain) && (!command.Arguments || n == 0) {
			continue
		}
		rest := plain[n:]
		if command.Text && len(plain) < len(args) {
			rest = append(slices.Clone(rest), jsonFlag)
		}
		return command, rest, true
	}
	return Command{}, nil, false
}

// jsonFlag as an argument asks for JSON.
const jsonFlag = "--json"

// commands are the commands of a binary of that version, by their names.
func commands(version string) map[string]Command {
	help := Command{Run: func(_ context.Context, call Call) error { return usage(call.Stdout) }}
	say := Command{Run: func(_ context.Context, call Call) error {
		_, err := fmt.Fprintln(call.Stdout, "publisher", version)
		return err
	}}
	return map[string]Command{
		"": {Configured: true, Run: func(ctx context.Context, call Call) error {
			return publish(ctx, call.Config, version, call.Stderr)
		}},
		"--help":         help,
		"-h":             help,
		"help":           help,
		"--version":      say,
		"version":        say,
		"health":         {Configured: true, Run: func(ctx context.Context, call Call) error { return health(ctx, call.Config.AdminAddr) }},
		"repartition":    {Configured: true, Arguments: true, Text: true, Run: repartition},
		"setup":          {Configured: true, Run: setUp},
		"doctor":         {Configured: true, Arguments: true, Text: true, Run: examine},
		"parked list":    {Configured: true, Arguments: true, Run: listParked},
		"parked show":    {Configured: true, Arguments: true, Run: showParked},
		"parked replay":  {Configured: true, Arguments: true, Run: replayParked},
		"parked discard": {Configured: true, Arguments: true, Run: discardParked},
		"parked purge":   {Configured: true, Arguments: true, Text: true, Run: purgeParked},

		"status":           {Configured: true, Arguments: true, Text: true, Run: showStatus},
		"checkpoint show":  {Configured: true, Arguments: true, Text: true, Run: showCheckpoint},
		"checkpoint set":   {Configured: true, Arguments: true, Text: true, Run: setCheckpoint},
		"checkpoint reset": {Configured: true, Arguments: true, Text: true, Run: resetCheckpoint},

		"checkpoint accept": {Configured: true, Arguments: true, Text: true, Run: acceptCheckpoint},
	}
}

func publish(ctx context.Context, config Config, version string, stderr io.Writer) error {
	paceCollector(config)
	publisher, err := New(config, version, stderr)
	if err != nil {
		return err
	}
	if err := publisher.Run(ctx); err != nil {
		return errors.New(publisher.secrets.Text(err.Error()))
	}
	return nil
}

// healthTimeout is how long a live process may take to say so.
const healthTimeout = 3 * time.Second

func health(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	return admin.CheckHealth(ctx, addr)
}

func usage(to io.Writer) error {
	_, err := io.WriteString(to, `publisher sends the changes of MongoDB collections to an Azure Service Bus topic.

  publisher                          publish, as leader or standby, until SIGTERM
  publisher status [--json]          who leads, in which term, how far the checkpoint is behind; from any machine
  publisher checkpoint show [--json] where the checkpoint is
  publisher checkpoint set PLACE     move it to an RFC 3339 time, or a position as shown
  publisher checkpoint reset         forget it: START_AT decides where to begin
  publisher checkpoint accept        go on from where it is, with the source and the settings as they are
                                     now, after a halt
                                     these three need --why TEXT; take --who NAME, --dry-run (change
                                     nothing), --json, --new (set and reset: nothing is known of the
                                     stream), and --give-up-copy (set: in the middle of a copy, whose
                                     rest is not sent then), and --partition N or all (where some partitions are
                                     halted, it is those otherwise); and are refused while a publisher leads that is not halted,
                                     unless --force is given
  publisher parked list [--all]      list the changes that could not be sent, one JSON object a line;
                                     with --all also those that were replayed or discarded
  publisher parked show ID           show one of them, whole, and what was done with it
  publisher parked replay ID...      send them now, in the order of their aggregates; or --all
  publisher parked discard ID...     give them up
  publisher parked purge --older-than AGE [--dry-run] [--json]
                                     remove those that were replayed or discarded longer ago, such as 720h
  publisher setup                    create collections and indexes of the state database, with a role that may
  publisher doctor [--json]          look at the real topic, source and state, and say what is wrong and how to mend it;
                                     exit status 1 on findings
  publisher repartition [--from N]   carry the checkpoints over to another number of PARTITIONS; with --dry-run
                                     it only says what it would do; --from says which checkpoints are right
                                     where there are several numbers of partitions
  publisher health                   ask the publisher in the same container whether it is live; exit status 0 or 1
  publisher --version                say which version this is
  publisher --help                   this text

Every command takes --json; those that list, show, replay, discard and set up print JSON anyway.
Exit status: 0 stopped as asked, 1 failed, 2 bad configuration or arguments.

Settings, all by environment:

`)
	if err != nil {
		return err
	}
	return settings.Usage(to, &Config{})
}
