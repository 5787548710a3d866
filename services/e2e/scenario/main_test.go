package scenario

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/cluster/clustertest"
)

// binaries are built once for all scenarios, or taken from the directory that
// E2E_BIN names.
var binaries cluster.Binaries

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "scenario-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if given := os.Getenv("E2E_BIN"); given != "" {
		binaries, err = cluster.BinariesIn(given)
	} else {
		binaries, err = fresh(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := goleak.Find(clustertest.IgnoreRenewers()...); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func fresh(dir string) (cluster.Binaries, error) {
	root, err := cluster.Root()
	if err != nil {
		return cluster.Binaries{}, err
	}
	return cluster.Build(context.Background(), root, dir, "scenario")
}
