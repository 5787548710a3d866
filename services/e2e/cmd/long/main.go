// Command long runs one campaign after another, with settings drawn by their seeds, in
// the root of the repository. It exits with 0 when all passed, 1 when one did not, 2
// when it was called wrongly.
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

	"changerelay/services/e2e/internal/campaign/long"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := long.Parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 2
	}
	passed, err := long.Run(ctx, cfg, stdout)
	if err != nil {
		fmt.Fprintln(stderr, err)
	}
	if err != nil || !passed {
		return 1
	}
	return 0
}
