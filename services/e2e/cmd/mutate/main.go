// Command mutate cuts each guard of the services in turn and shows which tests
// go red. It is called in the root of the repository; an argument limits it to
// the guards whose name contains it.
//
// It exits with 0 when every guard has a test that fails without it, 1 when one
// has none, 2 when it was called wrongly.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"changerelay/services/e2e/internal/mutation"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	guards := mutation.Guards()
	if len(args) > 0 {
		guards = slices.DeleteFunc(guards, func(g mutation.Guard) bool { return !strings.Contains(g.Name, args[0]) })
	}
	if len(args) > 1 || len(guards) == 0 {
		fmt.Fprintln(stderr, "usage: mutate [part of a guard's name]")
		return 2
	}
	root, err := os.Getwd()
	if err == nil {
		err = mutation.Run(ctx, root, guards, stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
