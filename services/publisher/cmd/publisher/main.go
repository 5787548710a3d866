// Command publisher sends the changes of a MongoDB events collection to an
// Azure Service Bus topic. Run it with --help for its settings.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"changerelay/services/publisher/internal/app"
	"changerelay/services/publisher/internal/settings"
)

// Exit codes.
const (
	stopped       = 0 // as asked
	failed        = 1
	misconfigured = 2
)

// version is set by the linker.
var version = "devel"

func main() {
	ctx, restore := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// After the first signal the default is back, so that a second one kills.
	context.AfterFunc(ctx, restore)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	command, rest, known := app.Find(version, args)
	if !known {
		fmt.Fprintf(stderr, "publisher: unknown arguments %q; see publisher --help\n", args)
		return misconfigured
	}
	if !command.Configured {
		return code(command.Run(ctx, app.Call{Args: rest, Stdout: stdout, Stderr: stderr}), stderr)
	}
	config, err := app.Load()
	if err != nil {
		settings.Report(stderr, "publisher", err)
		return misconfigured
	}
	return code(command.Run(ctx, app.Call{Config: config, Args: rest, Stdout: stdout, Stderr: stderr}), stderr)
}

func code(err error, stderr io.Writer) int {
	if err != nil {
		fmt.Fprintf(stderr, "publisher: %s\n", err)
		if errors.Is(err, app.ErrUsage) {
			return misconfigured
		}
		return failed
	}
	return stopped
}
