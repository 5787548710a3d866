// Package clustertest gives tests a sandbox process to talk to.
package clustertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"changerelay/services/e2e/internal/harness/cluster"
)

// Main runs a package's tests, looks for goroutines left behind, and removes
// what Sandbox built. A package that uses Sandbox calls it from its TestMain.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m, append(IgnoreRenewers(), goleak.Cleanup(func(code int) {
		built.Lock()
		defer built.Unlock()
		if built.dir != "" {
			_ = os.RemoveAll(built.dir)
		}
		os.Exit(code) //nolint:forbidigo // this is the end of a test's main
	}))...)
}

// IgnoreRenewers has goleak look past the SDK's goroutines that renew a link's
// claim. The SDK leaves one behind where a receiver is closed while it makes its
// link anew. The compiler numbers the function.
func IgnoreRenewers() []goleak.Option {
	const renewer = "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/internal.(*Namespace).startNegotiateClaimRenewer.func"
	return []goleak.Option{goleak.IgnoreAnyFunction(renewer + "2"), goleak.IgnoreAnyFunction(renewer + "3")}
}

// built is the sandbox that was built for this test process.
var built struct {
	sync.Mutex
	dir string
}

// Binary returns the path of the sandbox's binary: the one that SANDBOX_BIN
// names, or one that is built once.
func Binary(t *testing.T) string {
	t.Helper()
	binary, err := find(t)
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// Sandbox starts a sandbox for the test and returns where it is.
func Sandbox(t *testing.T) cluster.Endpoints {
	t.Helper()
	c := cluster.New(cluster.Config{Binaries: cluster.Binaries{Sandbox: Binary(t)}, Dir: t.TempDir()})
	t.Cleanup(c.Close)
	if err := c.StartSandbox(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c.Endpoints()
}

func find(t *testing.T) (string, error) {
	t.Helper()
	if given := os.Getenv("SANDBOX_BIN"); given != "" {
		return given, nil
	}
	built.Lock()
	defer built.Unlock()
	if built.dir != "" {
		return filepath.Join(built.dir, "sandbox"), nil
	}
	root, err := cluster.Root()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "sandbox-") //nolint:usetesting // it outlives the test, for the next one
	if err != nil {
		return "", fmt.Errorf("build the sandbox: %w", err)
	}
	binary := filepath.Join(dir, "sandbox")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/sandbox")
	cmd.Dir = filepath.Join(root, "services", "sandbox")
	if out, err := cmd.CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		return "", fmt.Errorf("build the sandbox: %w\n%s", err, out)
	}
	built.dir = dir
	return binary, nil
}
