// Command mutate cuts each guard of the services in turn and shows which tests
// go red. It is called in the root of the repository; --only limits it to the
// guards whose name contains a text, --at-once cuts several at a time, --of N to each Nth one, beginning where the
// seed says, so that N seeds in a row try them all.
//
// It exits with 0 when every guard has a test that fails without it, 1 when one
// has none, 2 when it was called wrongly.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"changerelay/services/e2e/internal/campaign/mutation"
	"changerelay/services/e2e/internal/campaign/mutation/guard"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	seed := flags.Uint64("seed", 1, "chooses with --of")
	only := flags.String("only", "", "a part of the names of the guards to cut")
	of := flags.Uint64("of", 1, "cut each `N`th guard alone")
	atOnce := flags.Int("at-once", max(1, runtime.NumCPU()/2), "cut `N` guards at once, each with tests of its own")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 || *of == 0 || *atOnce < 1 {
		fmt.Fprintln(stderr, "usage: mutate [--seed N] [--only TEXT] [--of N] [--at-once N]")
		return 2
	}
	var guards []guard.Guard
	for i, g := range mutation.Guards() {
		if strings.Contains(g.Name, *only) && (uint64(i)+*seed)%*of == 0 {
			guards = append(guards, g)
		}
	}
	if len(guards) == 0 {
		fmt.Fprintf(stderr, "no guard is called %q, or is one of each %d from seed %d on\n", *only, *of, *seed)
		return 2
	}
	fmt.Fprintf(stdout, "%d of %d guards, seed %d\n", len(guards), len(mutation.Guards()), *seed)
	root, err := os.Getwd()
	if err == nil {
		err = mutation.Run(ctx, root, guards, *atOnce, stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
