package testserver

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// Fault starts a fault of a sandbox: see POST /faults of its status page. It
// returns what ends it, where it lasts.
func Fault(t *testing.T, servers Servers, body string) func() {
	t.Helper()
	var started struct {
		ID int `json:"id"`
	}
	answer := ask(t, servers, http.MethodPost, "/faults", body)
	if err := json.Unmarshal(answer, &started); err != nil {
		t.Fatalf("fault %s is answered with %s: %v", body, answer, err)
	}
	return func() {
		t.Helper()
		ask(t, servers, http.MethodDelete, "/faults/"+strconv.Itoa(started.ID), "")
	}
}

// EnterWorld has a sandbox be as far, as slow and as strict as a named world says.
func EnterWorld(t *testing.T, servers Servers, name string) {
	t.Helper()
	ask(t, servers, http.MethodPut, "/world/"+name, "")
}

// SetWorld has a sandbox be in a world of the test's own: see PUT /world.
func SetWorld(t *testing.T, servers Servers, body string) {
	t.Helper()
	ask(t, servers, http.MethodPut, "/world", body)
}

func ask(t *testing.T, servers Servers, method, path, body string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, servers.Sandbox+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	http.DefaultClient.CloseIdleConnections()
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s of %s answers %d, %s: %v", method, path, body, response.StatusCode, answer, err)
	}
	return answer
}
