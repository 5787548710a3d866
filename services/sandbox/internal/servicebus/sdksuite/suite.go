package sdksuite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"changerelay/services/sandbox"
)

// testTimeout bounds each package's tests.
const testTimeout = 10 * time.Minute

// ErrDifferent says that the outcome is not the known one.
var ErrDifferent = errors.New("the outcome is not the known one")

// Config says what of the suite runs, and how.
type Config struct {
	// Match is a regular expression for the tests to run; empty for all. A partial run
	// looks neither for entries that are stale nor for tests that did not run.
	Match string
	// Record is a file that how the tests ended is written to, in place of comparing it
	// with what is recorded; empty for none.
	Record string
}

// Run runs the tests and writes a report.
func Run(ctx context.Context, config Config, out io.Writer) error {
	all, err := readKnown(knownText)
	if err != nil {
		return err
	}
	recorded, err := readRecording(recordedText)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sdk-suite")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := checkout(ctx, dir); err != nil {
		return err
	}
	files := map[string]string{}
	for _, p := range packages {
		name := strings.TrimPrefix(p, ".")
		found, err := filesOf(filepath.Join(dir, "module", name), strings.TrimPrefix(name+"/", "/"))
		if err != nil {
			return err
		}
		maps.Copy(files, found)
	}
	r, err := test(ctx, dir, config.Match)
	if err != nil {
		return err
	}
	if config.Match != "" {
		maps.DeleteFunc(all, func(test string, _ known) bool { return r.outcomes[test] == "" })
		maps.DeleteFunc(recorded, func(test string, _ outcome) bool { return r.outcomes[test] == "" })
	}
	if config.Record != "" {
		recorded = r.outcomes
		if err := os.WriteFile(config.Record, []byte(r.recording()), 0o644); err != nil {
			return fmt.Errorf("record the outcome: %w", err)
		}
	}
	if err := r.report(out, files); err != nil {
		return err
	}
	problems := r.problems(all, recorded)
	for _, p := range problems {
		if _, err := fmt.Fprintf(out, "\n%s\n", p); err != nil {
			return err
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("%w in %d cases", ErrDifferent, len(problems))
	}
	return nil
}

// test runs the tests against a sandbox of its own.
func test(ctx context.Context, dir, match string) (*results, error) {
	s, err := newServer() //nolint:contextcheck // building has no context: what it runs under one that is over is only closed
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(running) }()
	r, err := goTest(ctx, s, dir, match)
	stop()
	return r, errors.Join(err, <-ended)
}

func goTest(ctx context.Context, s *sandbox.Sandbox, dir, match string) (*results, error) {
	env, err := environment(s, dir)
	if err != nil {
		return nil, err
	}
	replaced, err := overlay(dir)
	if err != nil {
		return nil, err
	}
	args := append([]string{"test", "-json", "-count=1", "-timeout", testTimeout.String(), "-run", match, "-overlay", replaced}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(dir, "module")
	cmd.Env = append(os.Environ(), append(env, "GOWORK=off", "GOFLAGS=-buildvcs=false")...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("run go test: %w", err)
	}
	r, readErr := readResults(&stdout)
	if readErr == nil && len(r.outcomes) == 0 {
		readErr = fmt.Errorf("run go test: nothing was tested: %s", stderr.String())
	}
	return r, readErr
}
