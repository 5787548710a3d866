package ingo_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/ingo"
)

func TestOverlay_IsWhatAProjectorIsBuiltOf(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	under := filepath.Join(t.TempDir(), "under.json")
	if err := os.WriteFile(under, []byte(`{"Replace": {"/elsewhere/a.go": "/elsewhere/b.go"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := ingo.Overlay(root, t.TempDir(), under)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(overlay)
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if got := all.Replace["/elsewhere/a.go"]; got != "/elsewhere/b.go" || len(all.Replace) != 3 {
		t.Errorf("got %v, want what the other overlay replaces, and two files more", all.Replace)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "./services/projector/internal/config")
	build.Dir = root
	build.Env = append(os.Environ(), "GOWORK=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("build: %v\n%s", err, out)
	}
}
