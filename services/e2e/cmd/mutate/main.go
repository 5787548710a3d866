// Command mutate cuts each guard of the services in turn and shows which tests
// go red. It is called in the root of the repository; --only limits it to the
// guards whose name contains a text, --at-once cuts several at a time, --of N to each Nth one, beginning where the
// seed says, so that N seeds in a row try them all.
//
// With --whole FILE it keeps each result in FILE, and goes on where a run before
// it has stopped; --update writes all that is known there into a document.
//
// It exits with 0 when every guard has a test that fails without it, 1 when one
// has none or it was stopped, 2 when it was called wrongly.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"changerelay/services/e2e/internal/campaign/mutation"
	"changerelay/services/e2e/internal/campaign/mutation/guard"
	"changerelay/services/e2e/internal/check/report"
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
	whole := flags.String("whole", "", "keep results in this `file`, and cut only what it does not know to go red")
	update := flags.String("update", "", "write what the file of --whole knows of every guard into this `file` between its marks: docs/proofs.md")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 || *of == 0 || *atOnce < 1 || *update != "" && *whole == "" {
		fmt.Fprintln(stderr, "usage: mutate [--seed N] [--only TEXT] [--of N] [--at-once N] [--whole FILE [--update FILE]]")
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
	switch {
	case err != nil:
	case *whole == "":
		err = mutation.Run(ctx, root, guards, *atOnce, stdout, func(mutation.Result) error { return nil })
	default:
		err = mutation.Whole(ctx, root, *whole, guards, *atOnce, stdout)
		if *update != "" {
			err = errors.Join(err, write(context.WithoutCancel(ctx), root, *whole, *update))
		}
	}
	switch {
	case ctx.Err() != nil && *whole != "":
		fmt.Fprintf(stderr, "stopped: the same command goes on from %s\n", *whole)
		return 1
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// write puts what the file of a whole run, also of one that was stopped, knows of every
// guard into a document.
func write(ctx context.Context, root, whole, page string) error {
	guards := mutation.Guards()
	known, err := mutation.Known(ctx, root, whole, guards)
	if err != nil {
		return err
	}
	commit, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return fmt.Errorf("ask for the commit: %w", err)
	}
	text := mutation.Summary(guards, known, strings.TrimSpace(string(commit)), time.Now())
	return report.Update(page, mutation.BeginMark, mutation.EndMark, text)
}
