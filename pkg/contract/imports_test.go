package contract_test

import (
	"os/exec"
	"strings"
	"testing"
)

func TestImports_ThePackageImportsOnlyTheStandardLibrary(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	text, err := list.Output()
	if err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	if got, want := strings.Join(strings.Fields(string(text)), " "), "changerelay/pkg/contract"; got != want {
		t.Errorf("got packages outside the standard library %q, want %q alone: every consumer takes on what the contract imports", got, want)
	}
}
