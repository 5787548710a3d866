package mutation

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"changerelay/services/e2e/internal/campaign/mutation/guard"
	"changerelay/services/e2e/internal/harness/cluster"
)

// outcome is what became of the top-level tests of a run.
type outcome struct {
	// passed has how long each took.
	passed map[string]time.Duration
	failed []string
	// late is whether the time of the run was over before its tests were.
	late bool
}

// goCommand runs the go tool. Its processes all end with ctx; what they leave behind is left in dir.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := cluster.Group(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	return cmd
}

// build makes the program of a package's tests. What vet has to say is said elsewhere.
func (w *workshop) build(ctx context.Context, of, overlay, program string) error {
	cmd := goCommand(ctx, w.dir, "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", program, "./"+of)
	cmd.Dir = w.root
	if says, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests of %s: %w\n%s", of, err, says)
	}
	return nil
}

// run runs tests with one guard cut, or none. It is an error when they could not be run.
func (w *workshop) run(ctx context.Context, t *tests, program string, names []string, cut string, allowed time.Duration) (outcome, error) {
	cmd := goCommand(ctx, w.dir, "tool", "test2json", program, "-test.v=test2json", "-test.paniconexit0",
		"-test.timeout", allowed.String(), "-test.run", "^("+strings.Join(names, "|")+")$")
	if cut != "" {
		cmd.Args = append(cmd.Args, "-test.failfast")
	}
	cmd.Dir = t.dir
	cmd.Env = append(cmd.Env, guard.Switch+"="+cut)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	failed := cmd.Run()
	result, err := read(&stdout)
	if err != nil {
		return outcome{}, err
	}
	// A test that never came to its end, by a panic or the time limit, has failed.
	if failed != nil && len(result.failed) == 0 {
		return outcome{}, fmt.Errorf("run its tests: %w\n%s", failed, stderr.Bytes())
	}
	return result, nil
}

// read takes the outcome from what `go tool test2json` prints.
func read(stdout io.Reader) (outcome, error) {
	result := outcome{passed: make(map[string]time.Duration)}
	var running []string
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event struct {
			Action, Test, Output string
			Elapsed              float64
		}
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue
		}
		result.late = result.late || strings.HasPrefix(event.Output, "panic: test timed out after ")
		if event.Test == "" || strings.Contains(event.Test, "/") {
			continue
		}
		switch event.Action {
		case "run":
			running = append(running, event.Test)
			continue
		case "pass":
			result.passed[event.Test] = time.Duration(event.Elapsed * float64(time.Second))
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
