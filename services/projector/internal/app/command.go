package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"changerelay/services/projector/internal/admin"
	"changerelay/services/projector/internal/settings"
)

// ErrUsage means that arguments or configuration are wrong, and that it has
// been said what.
var ErrUsage = errors.New("wrong usage")

const usage = `projector applies the changes of a Service Bus subscription to read models in MongoDB.

  projector                run until SIGTERM or SIGINT
  projector parked list    print the parked messages as JSON, one a line
  projector health         ask the projector in the same container whether it is live; exit status 0 or 1
  projector --help         print this
  projector --version      print the version

Settings come from the environment.

`

// Command does what the arguments ask for.
func Command(ctx context.Context, args []string, version string, stdout, stderr io.Writer) error {
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
	case len(args) == 2 && args[0] == "parked" && args[1] == "list":
		return listParked(ctx, stdout, stderr)
	}
	fmt.Fprintf(stderr, "projector: unknown arguments %q\n\n%s", args, usage)
	return ErrUsage
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

func serve(ctx context.Context, version string, stderr io.Writer) error {
	cfg, projections, err := LoadConfig()
	if err != nil {
		settings.Report(stderr, "projector", err)
		return ErrUsage
	}
	paceCollector()
	a, err := New(ctx, cfg, projections, version, stderr)
	if err != nil {
		return err
	}
	return a.Run(ctx)
}
