// Command chaos injects every fault it knows for a while, and checks that
// nothing was lost, doubled or reordered. Interrupted, it injects no more, and
// judges what was done; interrupted again, it ends at once.
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

	"changerelay/services/e2e/internal/campaign/chaos"
)

func main() {
	ctx, end := context.WithCancel(context.Background())
	enough, _ := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(enough, func() {
		again, _ := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(again, end)
	})
	os.Exit(run(ctx, enough, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

func run(ctx, enough context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	cfg, err := chaos.Parse(args, getenv, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 2
	}
	r, _ := chaos.Run(ctx, enough, cfg, stdout)
	if err := r.Publish(stdout, cfg.JSON); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	if !r.Passed {
		return 1
	}
	return 0
}
