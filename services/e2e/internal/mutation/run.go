package mutation

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Run cuts each guard in turn, in the workspace at root, and writes a line for
// each. It returns an error when a guard has no test that fails without it, or
// could not be cut.
func Run(ctx context.Context, root string, guards []Guard, out io.Writer) error {
	var missed []error
	for _, g := range guards {
		red, err := g.red(ctx, root)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			missed = append(missed, fmt.Errorf("%s: %w", g.Name, err))
			fmt.Fprintf(out, "MISSED  %s: %v\n", g.Name, err)
			continue
		}
		fmt.Fprintf(out, "red     %s\n          %s\n", g.Name, strings.Join(red, ", "))
	}
	fmt.Fprintf(out, "%d guards, %d without a test that fails\n", len(guards), len(missed))
	return errors.Join(missed...)
}

// red returns the tests that pass with the guard and fail without it.
func (g Guard) red(ctx context.Context, root string) ([]string, error) {
	whole, err := test(ctx, root, g, "")
	if err != nil {
		return nil, err
	}
	if len(whole.failed) > 0 {
		return nil, fmt.Errorf("%s fails with the guard in place", strings.Join(whole.failed, ", "))
	}
	for _, name := range g.Tests {
		if !slices.Contains(whole.passed, name) {
			return nil, fmt.Errorf("%s has no test %s", g.Package, name)
		}
	}
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := g.Overlay(root, dir)
	if err != nil {
		return nil, err
	}
	cut, err := test(ctx, root, g, overlay)
	switch {
	case err != nil:
		return nil, err
	case len(cut.failed) == 0:
		return nil, errGreen
	}
	return cut.failed, nil
}

// Overlay writes the cut source into dir, and the file that tells the compiler
// of it, which it returns.
func (g Guard) Overlay(root, dir string) (string, error) {
	path := filepath.Join(root, g.File)
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	without, err := g.cut(string(source))
	if err != nil {
		return "", err
	}
	instead := filepath.Join(dir, "cut.go")
	if err := os.WriteFile(instead, []byte(without), 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: instead}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

// timeLimit is for the tests of one guard: without it some never end.
const timeLimit = "2m"

// outcome is what became of the top-level tests of a run.
type outcome struct{ passed, failed []string }

// test runs a guard's tests. It is an error when they could not be run.
func test(ctx context.Context, root string, g Guard, overlay string) (outcome, error) {
	args := []string{"test", "-json", "-timeout", timeLimit, "-run", "^(" + strings.Join(g.Tests, "|") + ")$"}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+g.Package)...)
	cmd.Dir = root
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	failed := cmd.Run()
	result, err := read(&stdout, &stderr)
	if err != nil {
		return outcome{}, err
	}
	// A test that never came to its end, by a panic or the time limit, has failed.
	if failed != nil && len(result.failed) == 0 {
		return outcome{}, fmt.Errorf("run its tests: %w\n%s", failed, stderr.Bytes())
	}
	return result, nil
}

// read takes the outcome from what `go test -json` prints. What the compiler has
// to say goes to complaints.
func read(stdout io.Reader, complaints io.Writer) (outcome, error) {
	var result outcome
	var running []string
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue
		}
		if event.Action == "build-output" {
			fmt.Fprint(complaints, event.Output)
		}
		if event.Test == "" || strings.Contains(event.Test, "/") {
			continue
		}
		switch event.Action {
		case "run":
			running = append(running, event.Test)
			continue
		case "pass":
			result.passed = append(result.passed, event.Test)
		case "fail":
			result.failed = append(result.failed, event.Test)
		default:
			continue
		}
		running = slices.DeleteFunc(running, func(name string) bool { return name == event.Test })
	}
	result.failed = append(result.failed, running...)
	return result, lines.Err()
}
