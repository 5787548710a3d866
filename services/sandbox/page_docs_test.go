package sandbox_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"changerelay/services/sandbox"
)

// TestPageDocs_TheCommandsOfTheDocumentationWork runs the block of commands under Looking
// and trying. Each must succeed, and what was written must be found.
func TestPageDocs_TheCommandsOfTheDocumentationWork(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("NOT RUN: there is no curl")
	}
	page, err := os.ReadFile("../../docs/sandbox.md")
	must(t, err)
	_, section, _ := strings.Cut(string(page), "\n## Looking and trying\n")
	_, block, _ := strings.Cut(section, "\n```sh\n")
	block, _, found := strings.Cut(block, "\n```\n")
	if !found {
		t.Fatal("docs/sandbox.md has no block of commands under Looking and trying")
	}
	s := running(t, sandbox.Config{})
	shell := exec.CommandContext(t.Context(), "sh", "-ec", `curl() { command curl --fail-with-body --silent --show-error "$@"; }`+"\n"+block)
	shell.Env = append(os.Environ(), "SANDBOX_URL="+s.URL())
	said, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, said)
	}
	if docs, messages := strings.Count(string(said), `"OrderPlaced"`), strings.Count(string(said), `"message_id"`); docs != 4 || messages != 2 {
		t.Errorf("got %d events and %d messages in\n%s\nwant the document twice, and the message twice with its type", docs, messages, said)
	}
}
