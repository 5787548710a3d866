// Command liars tries the judge of the relay on relays that lie, and shows what
// it finds in each. It is called in the root of the repository; --only limits it
// to the lies whose name contains a text, --of N to each Nth one, beginning where
// the seed says, so that N seeds in a row try them all.
//
// It exits with 0 when every lie was found out, and nothing found in the relay as
// it is; 1 when not, 2 when it was called wrongly.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"changerelay/services/e2e/internal/campaign/liars"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("liars", flag.ContinueOnError)
	flags.SetOutput(stderr)
	seed := flags.Uint64("seed", 1, "makes the events, and chooses with --of")
	only := flags.String("only", "", "a part of the names of the lies to try")
	of := flags.Uint64("of", 1, "try each `N`th lie alone")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 || *of == 0 {
		fmt.Fprintln(stderr, "usage: liars [--seed N] [--only TEXT] [--of N]")
		return 2
	}
	var lies []liars.Lie
	for i, lie := range liars.Lies() {
		if strings.Contains(lie.Name, *only) && (uint64(i)+*seed)%*of == 0 {
			lies = append(lies, lie)
		}
	}
	if len(lies) == 0 {
		fmt.Fprintf(stderr, "no lie is called %q, or is one of each %d from seed %d on; there are\n", *only, *of, *seed)
		for _, lie := range liars.Lies() {
			fmt.Fprintf(stderr, "  %s\n", lie.Name)
		}
		return 2
	}
	root, err := os.Getwd()
	if err == nil {
		err = liars.Run(ctx, root, *seed, lies, stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
