// Command bench measures the relay: the whole path, each part beside the bare
// clients and the plain loop, failover, latency and growth. It prints progress
// and tables, and writes the result as JSON and as a page with plots.
//
// It exits with 0 when everything was measured and everything carried was there,
// 1 when not, 2 when it was called wrongly.
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

	"changerelay/services/e2e/internal/bench/suite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	cfg, err := suite.Parse(args, getenv, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 2
	}
	r, err := suite.Run(ctx, cfg, stdout)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	if !r.Sound() {
		fmt.Fprintln(stderr, "something could not be measured, or does not count: see above")
		return 1
	}
	return 0
}
