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
	var config sdksuite.Config
	flag.StringVar(&config.Match, "run", "", "run the tests that match this `expression` alone")
	record := flag.Bool("record", false, "write down anew how the tests end, in place of comparing")
	flag.Parse()
	if *record {
		config.Record = "services/sandbox/internal/servicebus/sdksuite/recording.txt"
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := sdksuite.Run(ctx, config, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sdksuite:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}
