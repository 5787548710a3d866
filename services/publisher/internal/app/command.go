package app

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	Run       func(ctx context.Context, call Call) error
}

// Call is one call of a command. The configuration is empty where the command
// needs none.
type Call struct {
	Config         Config
	Args           []string
	Stdout, Stderr io.Writer
}

// Find returns the command that args name, and what they say beyond its name.
func Find(version string, args []string) (Command, []string, bool) {
	all := commands(version)
	for n := len(args); n >= 0; n-- {
		command, known := all[strings.Join(args[:n], " ")]
		if known && (n == len(args) || command.Arguments && n > 0) {
			return command, args[n:], true
		}
	}
	return Command{}, nil, false
}

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
		"repartition":    {Configured: true, Run: repartition},
		"setup":          {Configured: true, Run: setUp},
		"doctor":         {Configured: true, Arguments: true, Run: examine},
		"parked list":    {Configured: true, Arguments: true, Run: listParked},
		"parked show":    {Configured: true, Arguments: true, Run: showParked},
		"parked replay":  {Configured: true, Arguments: true, Run: replayParked},
		"parked discard": {Configured: true, Arguments: true, Run: discardParked},

		"status":           {Configured: true, Arguments: true, Run: showStatus},
		"checkpoint show":  {Configured: true, Arguments: true, Run: showCheckpoint},
		"checkpoint set":   {Configured: true, Arguments: true, Run: setCheckpoint},
		"checkpoint reset": {Configured: true, Arguments: true, Run: resetCheckpoint},
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
                                     both need --why TEXT, take --who NAME, and are refused while a
                                     publisher leads, unless --force is given
  publisher parked list [--all]      list the changes that could not be sent, one JSON object a line;
                                     with --all also those that were replayed or discarded
  publisher parked show ID           show one of them, whole, and what was done with it
  publisher parked replay ID...      send them now, in the order of their aggregates; or --all
  publisher parked discard ID...     give them up
  publisher setup                    create collections and indexes of the state database, with a role that may
  publisher doctor [--json]          look at the real topic, source and state, and say what is wrong and how to mend it;
                                     exit status 1 on findings
  publisher repartition              carry the checkpoints over to another number of PARTITIONS
  publisher health                   ask the publisher in the same container whether it is live; exit status 0 or 1
  publisher --version                say which version this is
  publisher --help                   this text

Exit status: 0 stopped as asked, 1 failed, 2 bad configuration or arguments.

Settings, all by environment:

`)
	if err != nil {
		return err
	}
	return settings.Usage(to, &Config{})
}
