// Command traffic writes order events to a deployed system, and can judge what
// becomes of them.
//
// It exits with 0 when it was stopped as asked or found no fault, 1 when there
// was one or it could not tell, 2 when it was called wrongly.
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

	"changerelay/services/e2e/internal/campaign/traffic"
)

// version is set by the linker.
var version = "devel"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default is back, so that a second one kills.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	if len(args) == 1 && args[0] == "--version" {
		fmt.Fprintln(stdout, "traffic", version)
		return 0
	}
	cfg, err := traffic.Parse(args, getenv, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 2
	}
	work := traffic.Write
	if cfg.Mode == traffic.Verify {
		work = traffic.Check
	}
	if err := work(ctx, cfg, stdout); err != nil {
		fmt.Fprintln(stderr, "traffic:", err)
		return 1
	}
	return 0
}
