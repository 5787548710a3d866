package sdksuite

import (
	"bufio"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"strings"
)

// outcome of one test: pass, fail or skip, as "go test -json" names them.
type outcome string

const (
	passed  outcome = "pass"
	failed  outcome = "fail"
	skipped outcome = "skip"
)

// results are those of a run.
type results struct {
	outcomes map[string]outcome          // by test: "TestX", "admin/TestX/a_subtest"
	output   map[string]*strings.Builder // likewise
	broken   []string                    // packages that did not come to an end
}

type event struct {
	Action, Package, Test, Output string
}

// readResults reads the output of "go test -json".
func readResults(in io.Reader) (*results, error) {
	r := &results{outcomes: map[string]outcome{}, output: map[string]*strings.Builder{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	failedTests := map[string]bool{} // by package
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // what the tool itself prints
		}
		name := strings.TrimPrefix(strings.TrimPrefix(e.Package, module), "/")
		if e.Test == "" {
			if e.Action == string(failed) && !failedTests[e.Package] {
				r.broken = append(r.broken, e.Package)
			}
			continue
		}
		test := strings.TrimPrefix(name+"/"+e.Test, "/")
		switch e.Action {
		case string(passed), string(failed), string(skipped):
			r.outcomes[test] = outcome(e.Action)
			failedTests[e.Package] = failedTests[e.Package] || e.Action == string(failed)
		case "output":
			if r.output[test] == nil {
				r.output[test] = &strings.Builder{}
			}
			r.output[test].WriteString(e.Output)
		}
	}
	return r, lines.Err()
}

// filesOf maps the tests of a package in dir to the files they are in.
func filesOf(dir, prefix string) (map[string]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Test") {
				files[prefix+f.Name.Name] = prefix + filepath.Base(path)
			}
		}
	}
	return files, nil
}
