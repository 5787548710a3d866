// Command crashpoints kills services at each named step, and checks that
// nothing was lost, doubled or reordered.
//
// It exits with 0 when every check passed, 1 when one did not or the run could
// not come to its end, 2 when it was called wrongly.
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

	"changerelay/services/e2e/internal/campaign/crashpoint"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := crashpoint.Parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 2
	}
	r, _ := crashpoint.Run(ctx, cfg, stdout)
	if err := r.Publish(stdout, cfg.JSON); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	if !r.Passed {
		return 1
	}
	return 0
}
