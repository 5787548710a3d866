// Package reference reads what the documentation says of the services: their
// settings and their metrics. Tests of the services keep those tables equal to
// the code, so what is deployed can be compared with them, without importing a
// service.
package reference

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Required is the default of a setting that has none.
const Required = "required"

// Root is the repository's root.
func Root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.work here or above")
		}
		dir = filepath.Dir(dir)
	}
}

// Read returns a file of the repository.
func Read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(t), filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Settings returns a service's settings with their defaults.
func Settings(t *testing.T, service string) map[string]string {
	t.Helper()
	return table(t, "docs/configuration.md", service+" settings")
}

var row = regexp.MustCompile("(?m)^\\| `([A-Za-z0-9_]+)` \\| `?([^|`]*)`? \\|")

// table reads a generated table: the first column's names and the second's values.
func table(t *testing.T, path, name string) map[string]string {
	t.Helper()
	_, rest, begins := strings.Cut(Read(t, path), "<!-- "+name+" -->")
	text, _, ends := strings.Cut(rest, "<!-- end -->")
	values := map[string]string{}
	for _, match := range row.FindAllStringSubmatch(text, -1) {
		values[match[1]] = strings.TrimSpace(match[2])
	}
	if !begins || !ends || len(values) == 0 {
		t.Fatalf("%s has no table %q", path, name)
	}
	return values
}

// Metrics returns the names of the services' metrics.
func Metrics(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, service := range []string{"publisher", "projector"} {
		for name := range table(t, "docs/metrics.md", service+" metrics") {
			names[name] = true
		}
	}
	return names
}
