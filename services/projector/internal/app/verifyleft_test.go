package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What runs the publisher's command line may leave a program behind that keeps its output
// open. How the command line has ended counts, and is told at once.
func TestVerify_WaitsForNothingThatThePublisherLeavesBehind(t *testing.T) {
	v := newVerifying(t, "verify-fails")
	v.happen("a", 1)
	v.awaitSequence("states", "a", 1)
	run := func(args ...string) outcome {
		t.Helper()
		done := make(chan outcome, 1)
		go func() {
			lines, err := runCommand(t, append(args, "--publisher", v.publisher)...)
			done <- outcome{lines, err}
		}()
		return ends(t, done)
	}
	leavesBehind(t, v.publisher)
	if o := run("verify"); o.err != nil {
		t.Errorf("a publisher that succeeds: got %v after %v", o.err, o.lines)
	}
	if err := os.WriteFile(filepath.Join(v.dir, "cutshort"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if o := run("verify"); o.err == nil || !strings.Contains(o.err.Error(), "some are missing") {
		t.Errorf("one that succeeds without the end of the events: got %v after %v, want that something is missing", o.err, o.lines)
	}
	leavesBehind(t, v.publisher, "echo nobody answers >&2", "exit 3")
	for _, args := range [][]string{{"verify"}, {"rebuild", "--aggregate", "a", "--why", "a test"}} {
		if o := run(args...); o.err == nil || !strings.Contains(o.err.Error(), "exit status 3: nobody answers") {
			t.Errorf("%v, and a publisher that fails: got %v after %v, want its failure", args, o.err, o.lines)
		}
	}
}
