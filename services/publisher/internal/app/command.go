package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"changerelay/services/publisher/internal/admin"
	"changerelay/services/publisher/internal/settings"
)

// Command is something that the binary does.
type Command struct {
	// Configured says that it needs the configuration.
	Configured bool
	Run        func(ctx context.Context, config Config, stdout, stderr io.Writer) error
}

// Commands are the commands of a binary of that version, by their arguments.
func Commands(version string) map[string]Command {
	help := Command{Run: func(_ context.Context, _ Config, stdout, _ io.Writer) error { return usage(stdout) }}
	say := Command{Run: func(_ context.Context, _ Config, stdout, _ io.Writer) error {
		_, err := fmt.Fprintln(stdout, "publisher", version)
		return err
	}}
	return map[string]Command{
		"": {Configured: true, Run: func(ctx context.Context, config Config, _, stderr io.Writer) error {
			return publish(ctx, config, version, stderr)
		}},
		"--help":    help,
		"-h":        help,
		"help":      help,
		"--version": say,
		"version":   say,
		"health": {Configured: true, Run: func(ctx context.Context, config Config, _, _ io.Writer) error {
			return health(ctx, config.AdminAddr)
		}},
		"parked list": {Configured: true, Run: func(ctx context.Context, config Config, stdout, _ io.Writer) error {
			return ListParked(ctx, config, stdout)
		}},
	}
}

func publish(ctx context.Context, config Config, version string, stderr io.Writer) error {
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
	_, err := io.WriteString(to, `publisher sends the changes of a MongoDB events collection to an Azure Service Bus topic.

  publisher              publish, as leader or standby, until SIGTERM
  publisher parked list  list the changes that could not be sent, one JSON object a line
  publisher health       ask the publisher in the same container whether it is live; exit status 0 or 1
  publisher --version    say which version this is
  publisher --help       this text

Exit status: 0 stopped as asked, 1 failed, 2 bad configuration.

Settings, all by environment:

`)
	if err != nil {
		return err
	}
	return settings.Usage(to, &Config{})
}
