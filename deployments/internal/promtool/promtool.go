// Package promtool runs Prometheus' own tool, for tests.
package promtool

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"changerelay/deployments/internal/reference"
)

// Tool is a promtool that is there.
type Tool struct{ path string }

// Find returns the program that PROMTOOL names, the one that scripts/promtool
// put into bin/, or the one in the path. Without any the test is not run; one
// that is named and not there fails it.
func Find(t *testing.T) Tool {
	t.Helper()
	own := filepath.Join(reference.Root(t), "bin", "promtool")
	if _, err := os.Stat(own); err != nil {
		own = ""
	}
	named := os.Getenv("PROMTOOL")
	path, err := exec.LookPath(cmp.Or(named, own, "promtool"))
	if err != nil && named != "" {
		t.Fatalf("PROMTOOL: %v", err)
	}
	if err != nil {
		t.Skip("NOT RUN: what alert rules and queries do, and whether they can be read: no promtool here (scripts/promtool gets it)")
	}
	return Tool{path}
}

// Run runs it, and fails the test with what it says where it fails.
func (tool Tool) Run(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), tool.path, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// Write writes a file that the tool reads, and returns its path.
func Write(t *testing.T, content any) string {
	t.Helper()
	text, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "promtool.yml")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
