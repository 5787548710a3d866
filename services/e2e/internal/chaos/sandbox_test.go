package chaos

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"

	"changerelay/services/e2e/internal/cluster"
)

// A sandbox that is away is suffering another deed. One that refuses a fault is
// asked for a fault that there is not: skipped in silence, it would never be done.
func TestAFaultThatTheSandboxRefusesIsAnError(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "there is no such kind", http.StatusBadRequest)
	}))
	defer server.Close()
	deed := sandboxFault(`{"kind":"none"}`, nil)
	strike := func() error {
		c := &campaign{http: server.Client(), cluster: cluster.New(cluster.Config{Backend: &cluster.Endpoints{SandboxStatusURL: server.URL}})}
		_, _, err := deed(t.Context(), c, rand.New(rand.NewPCG(1, 1)))
		return err
	}
	if err := strike(); err == nil || errors.Is(err, errNobody) {
		t.Errorf("refused: got %v, want an error of its own", err)
	}
	server.Close()
	if err := strike(); !errors.Is(err, errNobody) {
		t.Errorf("away: got %v, want nobody to harm", err)
	}
}
