package main

import (
	"io"
	"strings"
	"testing"

	"changerelay/services/e2e/internal/campaign/liars"
)

func TestLiars_ANameOfNoLieIsAWrongCall(t *testing.T) {
	t.Parallel()
	var stderr strings.Builder
	if status := run(t.Context(), []string{"--only", "no such lie"}, io.Discard, &stderr); status != 2 {
		t.Errorf("got status %d, want 2", status)
	}
	for _, lie := range liars.Lies() {
		if !strings.Contains(stderr.String(), lie.Name) {
			t.Errorf("got %q, want it to name %q", stderr.String(), lie.Name)
		}
	}
}
