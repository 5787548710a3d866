package sandbox_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tools runs scripts/tools-of-tests where a machine has what the script itself needs, and
// programs that are given by their text.
func tools(t *testing.T, ci string, programs map[string]string) string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"bash", "timeout", "ln"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		must(t, os.Symlink(path, filepath.Join(bin, name)))
	}
	for name, text := range programs {
		must(t, os.WriteFile(filepath.Join(bin, name), []byte("#!"+filepath.Join(bin, "bash")+"\n"+text+"\n"), 0o700)) //nolint:gosec // it is run
	}
	command := exec.CommandContext(t.Context(), filepath.Join(bin, "bash"), filepath.Join("..", "..", "scripts", "tools-of-tests"))
	command.Env = []string{"PATH=" + bin, "BIN=" + bin, "CI=" + ci}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("%v after\n%s", err, output)
	}
	return string(output)
}

func TestTools_WhatIsMissingIsListedWithItsReason(t *testing.T) {
	t.Parallel()
	const browser = "NOT RUN: pages in a browser (TestChromium_, TestPage_, TestPages_): "
	const installs = `case "$*" in *--no-download*chromium*) ln -s "$BIN/bash" "$BIN/chromium" ;; esac`
	root, somebody := "echo 0", "echo 1000"
	for name, c := range map[string]struct {
		programs map[string]string
		want     string // "" for no line
		own      bool   // somebody's own machine, and not CI's
	}{
		"elsewhere than on Debian": {map[string]string{"id": root}, browser + "needs what Debian calls chromium, and this is not Debian", false},
		"not as root":              {map[string]string{"id": somebody, "apt-get": "exit 1"}, browser + "apt-get install chromium needs root", false},
		"not to be had":            {map[string]string{"id": root, "apt-get": "exit 100"}, browser + "apt-get cannot install chromium, or not within 300s", false},
		"not what the package has": {map[string]string{"id": root, "apt-get": "exit 0"}, browser + `chromium is installed, and "command -v chromium" fails all the same`, false},
		"installed":                {map[string]string{"id": root, "apt-get": installs}, "", false},
		"on one's own machine":     {map[string]string{"id": root, "apt-get": installs}, browser + "apt-get install chromium", true},
		"there":                    {map[string]string{"id": root, "apt-get": "exit 100", "chromium": "exit 0"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ci := "true"
			if c.own {
				ci = ""
			}
			said := tools(t, ci, c.programs)
			if c.want != "" && !strings.Contains(said, c.want+"\n") || c.want == "" && strings.Contains(said, browser) {
				t.Errorf("got\n%s\nwant %q of the browser", said, c.want)
			}
			if !strings.Contains(said, "NOT RUN: examples in JavaScript") {
				t.Errorf("got\n%s\nwant a line of Node, which is never there", said)
			}
		})
	}
}

// needs is how a test says which packages it is skipped without.
var needs = regexp.MustCompile(`apt-get install ([a-z0-9 -]+)\)?"`)

func TestTools_EveryPackageThatATestNeedsIsInstalled(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(filepath.Join("..", "..", "scripts", "tools-of-tests"))
	must(t, err)
	found := 0
	must(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || entry.Name() == "tools_test.go" {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // a file of the repository
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			named := needs.FindStringSubmatch(line)
			if named == nil {
				continue
			}
			if !strings.Contains(line, "NOT RUN: ") {
				t.Errorf("%s skips without saying NOT RUN: %s", path, strings.TrimSpace(line))
			}
			for name := range strings.FieldsSeq(named[1]) {
				found++
				if !strings.Contains(string(script), " "+name+" ") {
					t.Errorf("%s needs %s, which scripts/tools-of-tests does not install", path, name)
				}
			}
		}
		return nil
	}))
	if found < 5 {
		t.Errorf("found %d packages that tests need, want those of pages, Node and Python at least", found)
	}
}
