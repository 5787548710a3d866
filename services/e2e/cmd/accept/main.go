// Command accept tries the relay on the servers that TEST_MONGODB_URI and
// TEST_SERVICEBUS_CONNECTION_STRING name, and writes a report. Exit status 1: something
// failed; 2: neither is set.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"changerelay/services/e2e/internal/campaign/accept"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	cfg, err := accept.Read(getenv)
	if len(args) > 0 {
		err = errors.Join(err, fmt.Errorf("there is no argument %q", args[0]))
	}
	if err != nil {
		fmt.Fprintln(stderr, "accept:", err)
		return 2
	}
	report, passed, err := accept.Run(ctx, cfg, stdout)
	if err != nil {
		fmt.Fprintln(stderr, "accept:", err)
		return 1
	}
	fmt.Fprintf(stdout, "\nthe report, without secrets, is %s\n", report)
	if !passed {
		return 1
	}
	return 0
}
