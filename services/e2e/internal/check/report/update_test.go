package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUpdate_WritesBetweenTheMarksAlone(t *testing.T) {
	t.Parallel()
	const begin, end, text = "<!-- run -->", "<!-- end of run -->", "new\n"
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte("a\n"+begin+"\nold\n"+end+"\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Update(path, begin, end, text); err != nil {
		t.Fatal(err)
	}
	page, _ := os.ReadFile(path)
	if got := string(page); !strings.HasPrefix(got, "a\n") || !strings.HasSuffix(got, "\nb\n") || strings.Contains(got, "old") || !strings.Contains(got, text) {
		t.Errorf("page: got %s", got)
	}
	if err := Update(filepath.Join(filepath.Dir(path), "none.md"), begin, end, text); err == nil {
		t.Error("a page that is not there: got no error")
	}
}
