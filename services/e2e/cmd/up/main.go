// Command up runs a whole relay on this machine, a sandbox, publishers and
// projectors, and prints where they are, until it is told to stop.
//
// It exits with 0 when it was told to stop, 1 when a process did not start or has
// ended, 2 when it was called wrongly.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"changerelay/services/e2e/internal/harness/up"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := up.Parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 2
	}
	if err := up.Run(ctx, cfg, stdout); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
