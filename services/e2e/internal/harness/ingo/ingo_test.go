package ingo_test

import (
	"os/exec"
	"strings"
	"testing"

	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/ingo"
)

func TestBuild_TheProjectorHasTheProjection(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	programs, err := ingo.Build(t.Context(), root, "")
	if err != nil {
		t.Fatal(err)
	}
	for group, want := range map[string]string{"": `{"name":"steps","collections":["steps"]}`, "beside": `{"name":"latest","collections":["latest"]}`} {
		validate := exec.CommandContext(t.Context(), programs.Projector, "validate")
		validate.Env = []string{"READMODEL_GROUP=" + group}
		got, err := validate.CombinedOutput()
		if err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("in group %q: got %s and %v, want %s", group, got, err, want)
		}
	}
}
