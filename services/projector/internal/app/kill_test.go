package app_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// buildProjector builds the program whose commands a test kills.
func buildProjector(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "projector")
	if output, err := exec.Command("go", "build", "-o", binary, "changerelay/services/projector/cmd/projector").CombinedOutput(); err != nil {
		t.Fatalf("build the projector: %v: %s", err, output)
	}
	return binary
}

// numbered are n topics of one name, one for each step at which a command is killed.
func numbered(name string, n int) []string {
	topics := make([]string, n)
	for i := range topics {
		topics[i] = fmt.Sprintf("%s-%d", name, i)
	}
	return topics
}
