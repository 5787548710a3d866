package app

import (
	"flag"
	"os"
	"strings"
	"testing"

	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/settings"
)

var update = flag.Bool("update", false, "write the settings table into docs/configuration.md")

func TestConfiguration_TheDocsListTheSettingsAsTheyAre(t *testing.T) {
	t.Parallel()
	const path, begin, end = "../../../../docs/configuration.md", "<!-- projector settings -->\n", "<!-- end -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	got, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no section between %q and %q", path, begin, end)
	}
	want := settings.Markdown(&config.Config{})
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("docs/configuration.md differs from Config; run: go test ./internal/app -run Configuration -update\ngot:\n%s\nwant:\n%s", got, want)
	}
}
