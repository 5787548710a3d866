// Command sdksuite runs the live tests of the Azure SDK for Go against a
// sandbox. Exit status 1: the outcome is not the known one.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"changerelay/services/sandbox/internal/servicebus/sdksuite"
)

func main() {
	match := flag.String("run", "", "run the tests that match this `expression` alone")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := sdksuite.Run(ctx, *match, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sdksuite:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}
