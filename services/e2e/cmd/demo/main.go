// Command demo runs the whole relay on this machine, injects faults, and reports
// whether anything was lost, doubled or put out of order.
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

	"changerelay/services/e2e/internal/campaign/demo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default is back, so that a second one kills.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	cfg, err := demo.Parse(args, getenv, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 2
	}
	d := demo.New(cfg, stdout)
	r, _ := d.Run(ctx)
	err = r.Publish(stdout, cfg.JSON)
	if err = errors.Join(err, d.Linger(ctx)); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	if !r.Passed {
		return 1
	}
	return 0
}
