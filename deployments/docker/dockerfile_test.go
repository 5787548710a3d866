package docker

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// stages returns the instructions of each stage, continued lines joined; what
// comes before the first FROM is in none.
func stages(t *testing.T, path string) [][]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", "")) {
		line = strings.Join(strings.Fields(line), " ")
		switch {
		case strings.HasPrefix(line, "FROM "):
			all = append(all, []string{line})
		case len(all) > 0 && line != "" && line[0] != '#':
			all[len(all)-1] = append(all[len(all)-1], line)
		}
	}
	return all
}

// without drops the instructions by which a stage gets its files.
func without(stage []string) []string {
	return slices.DeleteFunc(slices.Clone(stage), func(line string) bool {
		return strings.HasPrefix(line, "FROM ") || strings.HasPrefix(line, "COPY ")
	})
}

func dockerfiles(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("*.Dockerfile")
	if err != nil || len(paths) != 4 {
		t.Fatalf("container files: got %v, %v, want four", paths, err)
	}
	return paths
}

func TestDockerfile_TheImageBuiltHereIsTheOneThatUsersBuild(t *testing.T) {
	t.Parallel()
	for _, path := range dockerfiles(t) {
		all := stages(t, path)
		if len(all) != 3 {
			t.Fatalf("%s: got %d stages, want prebuilt, build and the last", path, len(all))
		}
		if got, want := without(all[0]), without(all[2]); !slices.Equal(got, want) {
			t.Errorf("%s: the stages differ\nprebuilt %q\nlast     %q", path, got, want)
		}
	}
}

// A check that asks where nobody listens calls every container unhealthy.
func TestDockerfile_TheSandboxIsAskedWhereItListens(t *testing.T) {
	t.Parallel()
	port := regexp.MustCompile(`"--http", "[0-9.]+:(\d+)"`)
	listens, asked := "", ""
	for _, line := range stages(t, "sandbox.Dockerfile")[2] {
		found := port.FindStringSubmatch(line)
		switch {
		case found == nil:
		case strings.HasPrefix(line, "ENTRYPOINT "):
			listens = found[1]
		case strings.HasPrefix(line, "HEALTHCHECK "):
			asked = found[1]
		}
	}
	if listens == "" || asked != listens {
		t.Errorf("port: the page listens on %q, and the health check asks %q", listens, asked)
	}
}

func TestDockerfile_AnImageRunsAsANumberedUserOnPinnedBases(t *testing.T) {
	t.Parallel()
	pinned := regexp.MustCompile(`(?m)^ARG (GO|BASE)_IMAGE=[a-z0-9./-]+:[a-z0-9.-]+$`)
	for _, path := range dockerfiles(t) {
		if last := stages(t, path)[2]; !slices.Contains(last, "USER 65532:65532") {
			t.Errorf("%s: got %q, want a numeric user: Kubernetes cannot tell that a name is not root", path, last)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := pinned.FindAll(text, -1); len(got) != 2 || strings.Contains(string(text), ":latest") {
			t.Errorf("%s: got pinned bases %q, want two, and nothing latest", path, got)
		}
	}
}

func TestDockerfile_TheBuildUsesTheGoThatTheModulesAsk(t *testing.T) {
	t.Parallel()
	work, err := os.ReadFile("../../go.work")
	if err != nil {
		t.Fatal(err)
	}
	minor := regexp.MustCompile(`(?m)^go (1\.\d+)`).FindSubmatch(work)
	if minor == nil {
		t.Fatal("go.work has no go line")
	}
	for _, path := range dockerfiles(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := "GO_IMAGE=golang:" + string(minor[1]) + "."; !strings.Contains(string(text), want) {
			t.Errorf("%s: got no %s", path, want)
		}
	}
}
