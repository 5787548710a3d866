// Command driversuite runs the official Go driver's integration and
// specification tests against the sandbox and compares them with what a real
// server does.
//
// It exits with 0 when nothing differs but what is listed, 1 when something
// does or the tests could not be run, 2 when it was called wrongly.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"syscall"

	"changerelay/services/sandbox/internal/mongodb/driversuite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default is back, so that a second one kills.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	config := driversuite.Config{Progress: stderr}
	flags := flag.NewFlagSet("driversuite", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Func("run", "only the units that match a `regexp`, as unified/TestUnifiedSpec/crud", func(s string) (err error) {
		config.Only, err = regexp.Compile(s)
		return err
	})
	flags.IntVar(&config.Jobs, "jobs", 2*runtime.NumCPU(), "how many units run side by side; they wait most of the time")
	flags.StringVar(&config.Logs, "logs", "", "a `directory` for what the tests print")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil || flags.NArg() > 0 || config.Jobs < 1:
		fmt.Fprintln(stderr, "usage: driversuite [-run REGEXP] [-jobs N] [-logs DIRECTORY]")
		return 2
	}
	report, err := driversuite.Run(ctx, config)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	report.Write(stdout)
	if !report.Passed() {
		return 1
	}
	return 0
}
