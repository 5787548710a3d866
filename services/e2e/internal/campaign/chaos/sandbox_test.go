package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"changerelay/services/e2e/internal/harness/cluster"
)

// A sandbox that is away is suffering another fault. One that refuses a fault is
// asked for a fault that there is not: skipped in silence, it would never be done.
func TestSandbox_AFaultThatTheSandboxRefusesIsAnError(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "there is no such kind", http.StatusBadRequest)
	}))
	defer server.Close()
	fault := sandboxFault(`{"kind":"none"}`, nil)
	inject := func() error {
		c := &campaign{http: server.Client(), cluster: cluster.New(cluster.Config{Backend: &cluster.Endpoints{SandboxStatusURL: server.URL}})}
		_, _, err := fault(t.Context(), c, rand.New(rand.NewPCG(1, 1)))
		return err
	}
	if err := inject(); err == nil || errors.Is(err, errNobody) {
		t.Errorf("refused: got %v, want an error of its own", err)
	}
	server.Close()
	if err := inject(); !errors.Is(err, errNobody) {
		t.Errorf("away: got %v, want nobody to hit", err)
	}
}

// A fault that ends at once is done to somebody; one that lasts may wait for somebody.
func TestSandbox_AFaultThatHitsNobodyIsNotDone(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]error{
		`{"affected":0}`: errNobody, `{"affected":3}`: nil, `{"id":7,"affected":0}`: nil,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
		defer server.Close()
		c := &campaign{http: server.Client(), cluster: cluster.New(cluster.Config{Backend: &cluster.Endpoints{SandboxStatusURL: server.URL}})}
		if _, _, err := sandboxFault(`{"kind":"some"}`, nil)(t.Context(), c, rand.New(rand.NewPCG(1, 1))); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", answer, err, want)
		}
	}
}

func TestChangeWorld_PutsBackTheWorldThatThereWas(t *testing.T) {
	t.Parallel()
	const before = `{"name":"mine","mongodb":{"round_trip":"3ms"}}`
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
		fmt.Fprintf(w, `{"world":%s,"names":["loopback","wan"]}`, before)
	}))
	defer server.Close()
	c := &campaign{
		http: server.Client(), taken: map[string]bool{},
		cluster: cluster.New(cluster.Config{Backend: &cluster.Endpoints{SandboxStatusURL: server.URL}}),
	}
	rng := rand.New(rand.NewPCG(1, 1))
	what, undo, err := changeWorld(t.Context(), c, rng)
	if err != nil || !strings.HasPrefix(what, "world wan") {
		t.Fatalf("change: got %q, %v", what, err)
	}
	if _, _, err := changeWorld(t.Context(), c, rng); !errors.Is(err, errNobody) {
		t.Errorf("change a world that is another already: got %v, want nobody to hit", err)
	}
	if err := undo(t.Context()); err != nil {
		t.Error(err)
	}
	_, drawn := drawWorld([]string{"wan"}, rand.New(rand.NewPCG(1, 1)))
	if want := []string{"GET /world", "PUT /world " + drawn, "PUT /world " + before}; !slices.Equal(asked, want) {
		t.Errorf("the sandbox was asked %q, want %q", asked, want)
	}
	if _, _, err := changeWorld(t.Context(), c, rng); err != nil {
		t.Errorf("change again: %v", err)
	}
}

func TestDrawWorld_AMemberLagsInSome(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	lags := 0
	for range 300 {
		what, body := drawWorld([]string{"datacenter", "wan"}, rng)
		var world struct {
			Base    string
			MongoDB struct{ Lag string }
		}
		if err := json.Unmarshal([]byte(body), &world); err != nil || !strings.HasPrefix(what, "world "+world.Base) {
			t.Fatalf("got %q and %q: %v", what, body, err)
		}
		if world.MongoDB.Lag == "" {
			continue
		}
		lags++
		if lag, err := time.ParseDuration(world.MongoDB.Lag); err != nil || lag < 200*time.Millisecond || lag > longestLag || !strings.Contains(what, lag.String()) {
			t.Errorf("got %q with a lag of %s and %v", what, lag, err)
		}
	}
	if lags < 60 || lags > 140 {
		t.Errorf("got a lag in %d of 300 worlds, want it in about a third", lags)
	}
}
