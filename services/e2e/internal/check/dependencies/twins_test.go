package dependencies

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"changerelay/services/e2e/internal/harness/cluster"
)

// twins are files, and directories of files, that publisher and projector both
// have, because they share only the contract. What is mended in one is mended in
// the other.
var twins = []string{
	"internal/admin",
	"internal/rate",
	"internal/backoff",
	"internal/cli",
	"internal/config/limit.go",
	"internal/config/limit_test.go",
	"internal/config/traces.go",
	"internal/credential",
	"internal/management",
	"internal/redact",
	"internal/settings",
	"internal/tracing",
}

// own are the files of twin directories that are a service's own, with why.
var own = map[string]string{
	"internal/tracing/doc.go":           "says what a span of this service stands for",
	"internal/tracing/changes.go":       "the publisher's spans",
	"internal/tracing/changes_test.go":  "the publisher's spans",
	"internal/tracing/messages.go":      "the projector's spans",
	"internal/tracing/messages_test.go": "the projector's spans",
}

func TestTwins_AreEqualButForTheirServicesName(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	publisher, projector := twinFiles(t, root, "publisher"), twinFiles(t, root, "projector")
	for name := range own {
		if !has(publisher, name) && !has(projector, name) {
			t.Errorf("%s is listed as a service's own, and neither has it", name)
		}
		delete(publisher, name)
		delete(projector, name)
	}
	for _, name := range slices.Sorted(maps.Keys(publisher)) {
		if !has(projector, name) || publisher[name] != projector[name] {
			t.Errorf("services/publisher/%[1]s and services/projector/%[1]s differ: make the same change in both", name)
		}
		delete(projector, name)
	}
	for name := range projector {
		t.Errorf("services/projector/%s has no twin in the publisher: copy it, or list it as the projector's own", name)
	}
}

// drivers are those of a browser: the sandbox tests its page without this module.
var drivers = [2]string{"services/sandbox/internal/chromium/chromium.go", "services/e2e/internal/harness/chromium/chromium.go"}

func TestTwins_TheDriversOfABrowserAreEqual(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	var texts [2]string
	for i, path := range drivers {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	if texts[0] != texts[1] {
		t.Errorf("%s and %s differ: make the same change in both", drivers[0], drivers[1])
	}
}

func has(files map[string]string, name string) bool {
	_, found := files[name]
	return found
}

// twinFiles returns the texts of a service's twins by their paths, without its
// name in them.
func twinFiles(t *testing.T, root, service string) map[string]string {
	t.Helper()
	files := map[string]string{}
	base := filepath.Join(root, "services", service)
	for _, twin := range twins {
		found, err := filepath.Glob(filepath.Join(base, filepath.FromSlash(twin), "*"))
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(twin) != "" {
			found = []string{filepath.Join(base, filepath.FromSlash(twin))}
		}
		if len(found) == 0 {
			t.Errorf("%s has no %s", service, twin)
		}
		for _, path := range found {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel(base, path)
			if err != nil {
				t.Fatal(err)
			}
			shared := strings.ReplaceAll(string(text), "changerelay/services/"+service+"/", "changerelay/services/SERVICE/")
			files[filepath.ToSlash(name)] = strings.ReplaceAll(shared, `Service: "`+service+`"`, `Service: "SERVICE"`)
		}
	}
	return files
}
