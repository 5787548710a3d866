package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"changerelay/services/sandbox"
)

// curls is a block of docs/sandbox.md that asks the sandbox something.
var curls = regexp.MustCompile("(?m)^```(?:sh)?\n((?:make .*\n)?(?:curl .*\n)+)```$")

// TestPageDocs_TheCommandsOfTheDocumentationWork runs every curl of the page. Each must
// succeed, and what was written must be found.
func TestPageDocs_TheCommandsOfTheDocumentationWork(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("NOT RUN: there is no curl (apt-get install curl)")
	}
	page, err := os.ReadFile("../../docs/sandbox.md")
	must(t, err)
	script := &strings.Builder{}
	for _, block := range curls.FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(block[1]) {
			if strings.HasPrefix(line, "curl ") {
				script.WriteString(line)
			}
		}
	}
	if got, want := strings.Count("\n"+script.String(), "\ncurl "), strings.Count(string(page), "\ncurl "); got != want || want == 0 {
		t.Fatalf("got %d of the %d commands of docs/sandbox.md", got, want)
	}
	s := running(t, sandbox.Config{})
	shell := exec.CommandContext(t.Context(), "sh", "-ec", `curl() { command curl --fail-with-body --silent --show-error "$@"; }`+"\n"+script.String())
	shell.Dir = t.TempDir()
	shell.Env = append(os.Environ(), "SANDBOX_URL="+s.URL(), "SERVICEBUS_MANAGEMENT_URL="+s.ManagementURL())
	said, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, said)
	}
	if docs, messages := strings.Count(string(said), `"OrderPlaced"`), strings.Count(string(said), `"message_id"`); docs != 4 || messages != 2 {
		t.Errorf("got %d events and %d messages in\n%s\nwant the document twice, and the message twice with its type", docs, messages, said)
	}
	if ca, err := os.ReadFile(filepath.Join(shell.Dir, "ca.pem")); err != nil || !strings.HasPrefix(string(ca), "-----BEGIN CERTIFICATE-----") {
		t.Errorf("got certificate %q, %v", ca, err)
	}
	if time.Duration(s.World().ServiceBus.RoundTrip) != 12*time.Millisecond {
		t.Errorf("got world %+v, want the last one that the page enters", s.World())
	}
}
