package releases

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

func TestReleases_AreNamedByWholeCommits(t *testing.T) {
	t.Parallel()
	whole := regexp.MustCompile(`^[0-9a-f]{40}$`)
	for i, r := range All {
		if !whole.MatchString(r.Commit) {
			t.Errorf("commit of release %s: got %q, want a whole hash", r.Name, r.Commit)
		}
		if i > 0 && r.Name <= All[i-1].Name {
			t.Errorf("release %s: stands behind %s, want the oldest first", r.Name, All[i-1].Name)
		}
	}
}

func TestBuild_SaysThatTheHistoryDoesNotReachBack(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "git", "init", root).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	if _, err := Last().Build(t.Context(), root); !errors.Is(err, ErrNotHere) {
		t.Errorf("error: got %v, want %v", err, ErrNotHere)
	}
}

func TestBuild_TakesProgramsThatAreThere(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	place := filepath.Join(root, ".run", "releases", Last().Commit)
	if err := os.MkdirAll(place, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sandbox", "publisher", "projector"} {
		if err := os.WriteFile(filepath.Join(place, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b, err := Last().Build(t.Context(), root)
	if got, want := b.Publisher, filepath.Join(place, "publisher"); err != nil || got != want {
		t.Errorf("publisher: got %q, %v, want %q", got, err, want)
	}
}
