package docker

import (
	"strings"
	"testing"
)

func TestImages_TheServersCanBeDecidedUpon(t *testing.T) {
	t.Parallel()
	var i Images
	if err := i.decide(t.Context(), nil, "sandbox"); err != nil || i.Real || !strings.Contains(i.String(), "BACKENDS says so") {
		t.Errorf("BACKENDS=sandbox: got %v, %v, want the sandbox, and why", i, err)
	}
	if err := i.decide(t.Context(), nil, "mongo"); err == nil || !strings.Contains(err.Error(), `"mongo"`) {
		t.Errorf("BACKENDS=mongo: got %v, want an error that names it", err)
	}
}
