package main

import (
	"strings"
	"testing"
)

func TestPlan_ThePlanNamesItsSources(t *testing.T) {
	t.Parallel()
	var stdout, stderr strings.Builder
	if got := run([]string{"--rate", "5000", "--aggregates", "1e6", "--size", "2KB", "--rtt", "5ms"}, &stdout, &stderr); got != 0 {
		t.Errorf("exit status: got %d, want 0: %s", got, &stderr)
	}
	for _, want := range []string{"PARTITIONS", "projectors", "docs/performance.md", "learn.microsoft.com", "operation log"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("got %s, want it to say %s", &stdout, want)
		}
	}
	if got := run([]string{"--rate", "many"}, &stdout, &stderr); got != 2 {
		t.Errorf("exit status of bad usage: got %d, want 2", got)
	}
}
