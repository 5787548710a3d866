package mutation

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestRun_ATestThatNeverEndsHasFailed(t *testing.T) {
	t.Parallel()
	got, err := read(strings.NewReader(`{"Action":"run","Test":"TestA"}
{"Action":"run","Test":"TestB"}
{"Action":"run","Test":"TestB/part"}
{"Action":"fail","Test":"TestB/part"}
{"Action":"pass","Test":"TestB","Elapsed":1.5}
{"Action":"output","Test":"TestA","Output":"panic: test timed out after 2m0s"}
not an event
{"Action":"fail"}
`))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(got.failed, " ") != "TestA" || len(got.passed) != 1 || got.passed["TestB"] != 1500*time.Millisecond || !got.late {
		t.Errorf("got %+v, want TestB passed, after 1.5s, and TestA late", got)
	}
}

func TestRun_EveryGuardIsListedOnce(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, g := range Guards() {
		if names[g.Name] || g.Name == "" || len(g.Tests) == 0 {
			t.Errorf("guard %q: want a name of its own, and tests", g.Name)
		}
		names[g.Name] = true
	}
}

// TestGuards_EachHasItsPlaceAndItsTests finds a list that the code has left
// behind, without building or running anything.
func TestGuards_EachHasItsPlaceAndItsTests(t *testing.T) {
	t.Parallel()
	const root = "../../../../.."
	for _, g := range Guards() {
		source, err := os.ReadFile(filepath.Join(root, g.File))
		if err != nil {
			t.Errorf("%s: %v", g.Name, err)
			continue
		}
		if _, err := g.Without(string(source)); err != nil {
			t.Errorf("%s: %v", g.Name, err)
		}
		tests := testsOf(t, filepath.Join(root, g.Package))
		for _, name := range g.Tests {
			if !strings.Contains(tests, "func "+name+"(") {
				t.Errorf("%s: %s has no test %s", g.Name, g.Package, name)
			}
		}
	}
}

// named is a test in the text of a document.
var named = regexp.MustCompile("`(Test\\w+)`")

// What docs/guarantees.md says of the tests that it names: nearly half of them stand for a
// guard that is cut.
func TestGuards_NearlyHalfOfTheNamedTestsStandForOne(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "knows nearly half of the tests named here") {
		t.Error("docs/guarantees.md does not say how many of its tests stand for a guard")
	}
	cut := map[string]bool{}
	for _, g := range Guards() {
		for _, name := range g.Tests {
			cut[name] = true
		}
	}
	all, stand := map[string]bool{}, 0
	for _, found := range named.FindAllStringSubmatch(string(text), -1) {
		if name := found[1]; !all[name] {
			all[name] = true
			if cut[name] {
				stand++
			}
		}
	}
	if share := float64(stand) / float64(len(all)); share < 0.45 {
		t.Errorf("%d of %d tests that docs/guarantees.md names stand for a guard that is cut: cut more, or say less", stand, len(all))
	}
}

// testsOf is the source of a package's tests.
func testsOf(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(source)
	}
	return all.String()
}
