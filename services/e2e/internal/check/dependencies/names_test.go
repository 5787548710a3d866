package dependencies

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"changerelay/services/e2e/internal/harness/cluster"
)

// longestName is how long the name of a test may be: a line of a log still shows it.
const longestName = 70

var (
	declared = regexp.MustCompile(`(?m)^func (Test\w*)\(\w+ \*testing\.T\)`)
	sentence = regexp.MustCompile(`^Test[A-Z]\w*?_[A-Z]\w+$`)
	table    = regexp.MustCompile(`\bt\.Run\(|\bcheck\(t, map`)
)

// badName says what is wrong with the name of a test, "" for nothing. It is a subject
// and what is said of it, so that -run finds all tests of a subject, or a subject
// alone, whose cases say it.
func badName(name, body string) string {
	switch {
	case len(name) > longestName:
		return "is too long"
	case !sentence.MatchString(name) && !table.MatchString(body):
		return "is not named TestSubject_SaysWhat, and has no cases that say what"
	}
	return ""
}

func TestNames_BeginWithTheirSubject(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	tests := 0
	for _, module := range []string{"pkg", "services", "deployments"} {
		err := filepath.WalkDir(filepath.Join(root, module), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, at := range declared.FindAllSubmatchIndex(text, -1) {
				tests++
				name := string(text[at[2]:at[3]])
				body, _, _ := strings.Cut(string(text[at[1]:]), "\n}\n")
				if wrong := badName(name, body); wrong != "" {
					t.Errorf("%s: %s %s", path, name, wrong)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if tests < 1000 {
		t.Errorf("found %d tests, and there are thousands: they are not looked for where they are", tests)
	}
}

func TestNames_WrongOnesAreFound(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		test, body string
		wrong      bool
	}{
		"a subject and what is said of it": {"TestLease_IsRenewed", "", false},
		"a subject with cases":             {"TestClassify", "t.Run(name, func(t *testing.T) {})", false},
		"a subject without cases":          {"TestClassify", "classify(err)", true},
		"a sentence without a subject":     {"TestALeaseIsRenewed", "renew()", true},
		"what is said, in small letters":   {"TestLease_isRenewed", "", true},
		"more than a line of a log shows":  {"TestLease_" + strings.Repeat("A", longestName), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := badName(tt.test, tt.body); (got != "") != tt.wrong {
				t.Errorf("got %q, want something wrong: %v", got, tt.wrong)
			}
		})
	}
}
