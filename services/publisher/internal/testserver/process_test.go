package testserver

import (
	"strings"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

func TestStart_ASandboxThatEndsAtOnceIsAnError(t *testing.T) {
	t.Parallel()
	if _, _, err := startSandbox("--no-such-flag"); err == nil || !strings.Contains(err.Error(), "-no-such-flag") {
		t.Errorf("got %v, want what the sandbox says", err)
	}
}
