package mutation

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"changerelay/services/e2e/internal/campaign/mutation/guard"
)

// module is a workspace of one module with two guards, of which no test stands for the second.
func module(t *testing.T) (root string, guards []guard.Guard) {
	t.Helper()
	root = t.TempDir()
	write(t, root, "go.mod", "module m\n\ngo 1.26\n")
	write(t, root, "p/p.go", "package p\n\nfunc Two() int { return 2 }\n\nfunc Three() int { return 3 }\n")
	write(t, root, "p/p_test.go", "package p\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tif Two() != 2 {\n\t\tt.Fatal()\n\t}\n}\n")
	return root, []guard.Guard{
		{Name: "two", File: "p/p.go", Cut: "return 2", With: "return 1", Package: "p", Tests: []string{"TestTwo"}},
		{Name: "three", File: "p/p.go", Cut: "return 3", With: "return 1", Package: "p", Tests: []string{"TestTwo"}},
	}
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestState_ARunGoesOnWhereAnotherHasStopped(t *testing.T) {
	t.Setenv("GOWORK", "off")
	scratch := t.TempDir()
	t.Setenv("TMPDIR", scratch)
	root, guards := module(t)
	file := filepath.Join(root, "whole.jsonl")
	run := func() (says string, err error) {
		var out strings.Builder
		err = Whole(t.Context(), root, file, guards, 2, &out)
		return out.String(), err
	}
	expect := func(when string, wantRun, wantKnown int) {
		t.Helper()
		says, err := run()
		if !errors.Is(err, errGreen) || strings.Count(says, "\nred ")+strings.Count(says, "\nMISSED ") != wantRun {
			t.Errorf("%s: got %v and %s, want %d guards to be cut, and one that nothing stands for", when, err, says, wantRun)
		}
		known, err := Known(t.Context(), root, file, guards)
		if err != nil || len(known) != wantKnown || known[0].Guard != "two" || len(known[0].Red) != 1 || known[1].Problem == "" {
			t.Errorf("%s: got %+v and %v, want both guards", when, known, err)
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := Whole(stopped, root, file, guards, 2, &strings.Builder{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v of a run that was stopped", err)
	}
	expect("at first", 2, 2)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, root, "whole.jsonl", string(text)+`{"guard":"two","of`)
	expect("behind half a line", 1, 2)
	write(t, root, "p/testdata/a.txt", "other")
	expect("with other data", 2, 2)
	write(t, root, "p/p_test.go", "package p\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tif Two() != 2 {\n\t\tt.Error()\n\t}\n}\n")
	expect("with another test", 2, 2)
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("got %v and %v, want nothing left behind", left, err)
	}
}

// A test that fails now and then, whatever is cut, stands for nothing.
func TestRun_AFailureIsConfirmed(t *testing.T) {
	t.Setenv("GOWORK", "off")
	// In turn: one run with all guards, one with the switch, and three with the cut alone, of
	// which the last that is needed is followed by as many with the guard as there were
	// without it. One that fails with the switch is followed by one with the guard, and up to
	// three more with the switch.
	for name, test := range map[string]struct{ fails, without, missed string }{
		"now and then":         {"3 10", "", "no test fails without it: but for one run"},
		"with the guard, too":  {"3 5", "", "no test fails without it: TestTwo_IsTwo fails with it, too"},
		"without it alone":     {"", "3 6", ""},
		"without it, and once": {"", "3", "no test fails without it: but for one run"},
		"at once, and again":   {"", "2 4", ""},
		"at once, and then":    {"", "2 6", ""},
		"at once, and alone":   {"", "2 7 10", ""},
		"at once, by chance":   {"2", "", "no test fails without it"},
		"at once, and with it": {"2 3", "", "no test fails without it: TestTwo_IsTwo fails with it, too"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, root, "go.mod", "module m\n\ngo 1.26\n")
			write(t, root, "p/p.go", "package p\n\nfunc Two() int { return 2 }\n")
			write(t, root, "p/p_test.go", `package p

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestTwo_IsTwo(t *testing.T) {
	runs, _ := os.ReadFile("runs")
	n := len(runs) + 1
	if err := os.WriteFile("runs", append(runs, '.'), 0o600); err != nil {
		t.Fatal(err)
	}
	of := func(list string) bool { return slices.Contains(strings.Fields(list), strconv.Itoa(n)) }
	if of("`+test.fails+`") || Two() != 2 && of("`+test.without+`") {
		t.Fatal(n)
	}
}
`)
			guards := []guard.Guard{{Name: "two", File: "p/p.go", Cut: "return 2", With: "return 1", Package: "p", Tests: []string{"TestTwo_IsTwo"}}}
			var got Result
			err := Run(t.Context(), root, guards, 1, &strings.Builder{}, func(r Result) error { got = r; return nil })
			if got.Problem != test.missed || (err != nil) != (test.missed != "") {
				t.Errorf("got %+v and %v, want the problem %q", got, err, test.missed)
			}
		})
	}
}

func TestSummary_CountsByModuleAndNamesSurvivors(t *testing.T) {
	t.Parallel()
	guards := []guard.Guard{
		{Name: "a", File: "services/publisher/internal/a.go"},
		{Name: "b", File: "services/publisher/b.go"},
		{Name: "c", File: "pkg/contract/c.go"},
		{Name: "d", File: "pkg/contract/d.go"},
	}
	text := Summary(guards, []Result{
		{Guard: "a", Red: []string{"TestA"}, Seconds: 3600},
		{Guard: "b", Problem: "no test fails without it\nmore", Seconds: 61},
		{Guard: "c", Red: []string{"TestC"}, Late: true},
	}, "abc", time.Unix(0, 0))
	for _, want := range []string{
		"1970-01-01, commit `abc`, in 1h1m1s of work. 1 tests failed by not coming",
		"| `pkg/contract` | 2 | 1 | 0 | 1 |\n| `services/publisher` | 2 | 1 | 1 | 0 |\n| all | 4 | 2 | 1 | 1 |",
		"- b: no test fails without it\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s, want it to say %q", text, want)
		}
	}
}
