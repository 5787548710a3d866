package admin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a server for the length of the test and returns its base URL.
func serve(t *testing.T, source Source) string {
	t.Helper()
	if source.Metrics == nil {
		source.Metrics = prometheus.NewRegistry()
	}
	server, err := New("127.0.0.1:0", source)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return "http://" + server.Addr()
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestAdmin_AFailingCheckIsNamedButItsTextStaysInside(t *testing.T) {
	url := serve(t, Source{
		Live:  map[string]func() error{"loop": func() error { return nil }},
		Ready: map[string]func() error{"database": func() error { return errors.New("dial mongodb://user:canary@db") }},
	})
	if code, _ := get(t, url+"/live"); code != http.StatusOK {
		t.Errorf("/live: got %d, want 200: readiness must not decide liveness", code)
	}
	code, body := get(t, url+"/ready?full=1")
	if code != http.StatusServiceUnavailable || !strings.Contains(body, "database") {
		t.Errorf("/ready: got %d %s, want 503 naming the check", code, body)
	}
	if strings.Contains(body, "canary") {
		t.Errorf("/ready shows the check's own error: %s", body)
	}
}

func TestAdmin_StatusMetricsAndPageAreServed(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "relay_test", Help: "A gauge."}, func() float64 { return 7 }))
	url := serve(t, Source{Metrics: registry, Status: func() any { return map[string]int{"sent": 3} }})
	for path, want := range map[string]string{"/status": `"sent": 3`, "/metrics": "relay_test 7", "/": "<!doctype html>"} {
		if code, body := get(t, url+path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: got %d %s, want 200 with %s", path, code, body, want)
		}
	}
	if code, _ := get(t, url+"/elsewhere"); code != http.StatusNotFound {
		t.Errorf("an unknown path: got %d, want 404", code)
	}
}

// TestAdmin_ThePageIsReadByAnyone looks for what a screen reader, a narrow screen and a closed
// network need. What the page makes of a status is looked at in a browser.
func TestAdmin_ThePageIsReadByAnyone(t *testing.T) {
	url := serve(t, Source{})
	_, body := get(t, url+"/")
	for _, want := range []string{`lang="en"`, "width=device-width", `role="status"`, `role="img" aria-label=`, `scope: "row"`, "<main>", "<nav aria-label="} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, bad := range []string{"http://", "https://", "innerHTML", "tabindex"} {
		if strings.Contains(body, bad) {
			t.Errorf("the page has %s", bad)
		}
	}
}

func TestAdmin_AnAddressInUseIsAnErrorThatNamesTheSetting(t *testing.T) {
	url := serve(t, Source{})
	_, err := New(strings.TrimPrefix(url, "http://"), Source{})
	if err == nil || !strings.Contains(err.Error(), "ADMIN_ADDR") {
		t.Errorf("got %v, want an error naming ADMIN_ADDR", err)
	}
}
