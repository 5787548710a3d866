package guard

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTogether_OneBinaryCutsTheGuardThatIsNamed builds a program of functions of every
// kind, and cuts its guards one by one.
func TestTogether_OneBinaryCutsTheGuardThatIsNamed(t *testing.T) {
	t.Parallel()
	const program = `package main

import "fmt"

const limit = 1 // guard constant

type list[T any] struct{ all []T }

func (*list[T]) name() string { return "guard method" }

func (l *list[T]) add(more ...T) { l.all = append(l.all, more...); fmt.Println("guard add", len(l.all)) }

func double[T any](_ int, v T) (a, b T) { a, b = v, v; fmt.Println("guard double"); return }

func unnamed(int, string) {
	fmt.Println("guard unnamed", "guard twice")
}

func caught() { defer func() { _ = recover() }(); fmt.Println("guard caught") }

func init() { fmt.Println("guard init") }

func main() {
	l := &list[int]{}
	l.add(1, 2)
	a, b := double(limit, "a")
	unnamed(1, a+b)
	caught()
	fmt.Println(l.name())
}
`
	root, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"main.go": program, "go.mod": "module m\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var guards []Guard
	cuts := []string{"constant", "method", "add", "double", "unnamed", "twice", "caught", "init"}
	for _, name := range cuts {
		guards = append(guards, Guard{File: "main.go", Cut: "guard " + name, With: "no " + name})
	}
	overlay, switched, err := Together(root, dir, guards, nil)
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "program")
	build := exec.Command("go", "build", "-overlay", overlay, "-o", binary, ".")
	build.Dir, build.Env = root, append(os.Environ(), "GOWORK=off")
	if says, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, says)
	}
	whole := run(t, binary, "")
	for i, name := range cuts {
		if alone := name == "constant" || name == "caught"; switched[i] == alone {
			t.Errorf("%s: got %t, want switches for what stands in a function that may be called by another", name, switched[i])
		}
		if !switched[i] {
			continue
		}
		got, want := run(t, binary, string(rune('0'+i))), strings.Replace(whole, "guard "+name, "no "+name, 1)
		if got != want || got == whole {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestBlame_NamesTheGuardsWithoutWhichNothingCompiles(t *testing.T) {
	t.Parallel()
	root, dir := t.TempDir(), t.TempDir()
	source := "package p\n\nfunc a[T any]() {\n\tone()\n\ttwo()\n}\n\nfunc b() {\n\tthree()\n}\n"
	if err := os.WriteFile(filepath.Join(root, "p.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	guards := []Guard{{File: "p.go", Cut: "one()"}, {File: "p.go", Cut: "two()"}, {File: "p.go", Cut: "three()"}}
	_, switched, err := Together(root, dir, guards, map[int]bool{1: true})
	if err != nil || !switched[0] || switched[1] || !switched[2] {
		t.Fatalf("got %v and %v, want all switched but the one to be cut alone", switched, err)
	}
	text, _ := os.ReadFile(filepath.Join(dir, "file0.go"))
	for says, want := range map[string]string{
		"three()":                          "[]",
		"# p\n" + at(text, "bMutation"):    "[2]",
		"x/" + at(text, "aMutationCut0[T"): "[0]",
		"file0.go:1:2: undefined: x":       "[]",
	} {
		got, err := Blame(dir, says)
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: got %v and %v, want %s", says, got, err, want)
		}
	}
}

// at is what the compiler says of the line behind the one where text stands last.
func at(source []byte, text string) string {
	before := string(source[:strings.LastIndex(string(source), text)])
	return fmt.Sprintf("file0.go:%d:3: undefined: y\n", strings.Count(before, "\n")+2)
}

func run(t *testing.T, binary, cut string) string {
	t.Helper()
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), Switch+"="+cut)
	says, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, says)
	}
	return string(says)
}
