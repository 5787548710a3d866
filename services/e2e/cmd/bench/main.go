// Command bench drives a million events through the whole relay on this machine
// and reports events a second, memory, and processor time per event. `bench
// projector` measures the projector beside the bare clients, and `bench
// publisher` compares the publisher with them and with a plain loop.
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

	"changerelay/services/e2e/internal/bench"
	"changerelay/services/e2e/internal/projectorbench"
	"changerelay/services/e2e/internal/speed"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "projector" {
		return projector(ctx, args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == "publisher" {
		return publisher(ctx, args[1:], stdout, stderr)
	}
	cfg, err := bench.Parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 2
	}
	r, _ := bench.New(cfg, stdout).Run(ctx)
	if err := r.Publish(stdout, cfg.JSON); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	if !r.Passed {
		return 1
	}
	return 0
}

// projector measures the projector beside the bare clients.
func projector(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := projectorbench.Parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 2
	}
	if err := projectorbench.Run(ctx, cfg, stdout); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// publisher compares the publisher alone with what bounds it.
func publisher(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := speed.Parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 2
	}
	if err := speed.Run(ctx, cfg, stdout); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
