// Command projector applies the changes of a Service Bus subscription to read
// models in MongoDB. Settings come from the environment; --help lists them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"changerelay/services/projector/internal/app"
)

// version is set by the linker.
var version = "devel"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default is back, so that a second one kills.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with its surroundings handed in. It returns the exit code: 0
// stopped as asked, 1 failed, 2 bad arguments or configuration.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := app.Command(ctx, args, version, stdout, stderr)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, app.ErrUsage):
		return 2
	default:
		fmt.Fprintf(stderr, "projector: %s\n", err)
		return 1
	}
}
