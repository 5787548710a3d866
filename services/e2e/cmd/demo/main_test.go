package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDemo_BadUsageEndsWithStatus2(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "events.ndjson")
	good := `{"aggregateId":"a","type":"T","version":1,"time":"2026-03-01T12:00:00Z","data":{}}`
	if err := os.WriteFile(bad, []byte(good+"\n"+strings.Replace(good, "1,", "-1,", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		args []string
		says string
	}{
		{name: "an unknown flag", args: []string{"--fast"}, says: "fast"},
		{name: "a bad line of input", args: []string{"--input", bad}, says: bad + ":2: version is -1, not a whole number from 0 on"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr strings.Builder
			if got, want := run(t.Context(), tt.args, func(string) string { return "" }, &stdout, &stderr), 2; got != want {
				t.Errorf("exit status: got %d, want %d", got, want)
			}
			if !strings.Contains(stderr.String(), tt.says) {
				t.Errorf("standard error: got %q, want it to say %q", stderr.String(), tt.says)
			}
			if stdout.Len() > 0 {
				t.Errorf("standard output: got %q, want nothing, for nothing is begun", stdout.String())
			}
		})
	}
}

func TestDemo_ARunThatCannotBeginEndsWithStatus1(t *testing.T) {
	t.Parallel()
	var stdout, stderr strings.Builder
	args := []string{"--bin", t.TempDir(), "--dir", t.TempDir()}
	if got, want := run(t.Context(), args, func(string) string { return "" }, &stdout, &stderr), 1; got != want {
		t.Errorf("exit status: got %d, want %d", got, want)
	}
	if !strings.Contains(stdout.String(), "FAILED: find binary") {
		t.Errorf("report: got %q, want it to say that the binaries are missing", stdout.String())
	}
}
