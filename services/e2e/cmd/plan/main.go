// Command plan prints what a load takes: partitions, replicas, connections, messaging
// units, the operation log, and what is paid for, each figure with its source.
//
// It exits with 0, or 2 when it was called wrongly.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"changerelay/services/e2e/internal/bench/plan"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	load, err := plan.Parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 2
	}
	if err := plan.Write(stdout, load); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
