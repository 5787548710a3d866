package main

import (
	"path/filepath"
	"strings"
	"testing"

	"changerelay/services/e2e/internal/bench/results"
)

func status(t *testing.T, args ...string) (code int, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = run(t.Context(), args, func(string) string { return "" }, &out, &errs)
	return code, errs.String()
}

func TestBench_BadUsageEndsWithStatus2(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--fast"}, {"everything"}, {"--repeats", "-1"}} {
		if code, stderr := status(t, args...); code != 2 || !strings.Contains(stderr, strings.TrimLeft(args[0], "-")) {
			t.Errorf("%q: got status %d and %q, want 2 and what is wrong", args, code, stderr)
		}
	}
}

func TestBench_OnlyASoundResultEndsWithStatus0(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		wrong []string
		want  int
	}{
		"sound":     {nil, 0},
		"not sound": {[]string{"repetition 1: the read model is not what the events make"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "bench.json")
			r := results.Result{Experiments: []results.Experiment{{Name: "path", Wrong: tt.wrong}}}
			if err := r.WriteJSON(path); err != nil {
				t.Fatal(err)
			}
			if code, _ := status(t, "--from", path); code != tt.want {
				t.Errorf("exit status: got %d, want %d", code, tt.want)
			}
		})
	}
}

func TestBench_ARunThatCannotBeginEndsWithStatus1(t *testing.T) {
	t.Parallel()
	if code, stderr := status(t, "--bin", t.TempDir(), "--dir", t.TempDir()); code != 1 || !strings.Contains(stderr, "find binary") {
		t.Errorf("got status %d and %q, want 1 and that the binaries are missing", code, stderr)
	}
}
