package sandboxtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Fault starts a fault of the sandbox, such as
//
//	e.Fault(t, map[string]any{"kind": "servicebus.throttle", "path": "changes/Subscriptions/projector"})
//
// It lasts until end is called, or the test ends.
func (e *Endpoints) Fault(t *testing.T, fault map[string]any) (end func()) {
	t.Helper()
	if e.SandboxURL == "" {
		t.Skip("only the sandbox has faults on demand")
	}
	body, err := json.Marshal(fault)
	if err != nil {
		t.Fatal(err)
	}
	var started struct {
		ID       int    `json:"id"`
		Affected int    `json:"affected"`
		Error    string `json:"error"`
	}
	if err := e.faults(t.Context(), http.MethodPost, "", body, &started); err != nil || started.Error != "" {
		t.Fatalf("start fault %s: %v %s", body, err, started.Error)
	}
	end = func() {
		if started.ID > 0 {
			_ = e.faults(context.WithoutCancel(t.Context()), http.MethodDelete, fmt.Sprintf("/%d", started.ID), nil, &struct{}{})
		}
	}
	t.Cleanup(end)
	return end
}

// Become has the servers be in another world, such as
//
//	e.Become(t, `{"base": "loopback", "service_bus": {"round_trip": "5ms"}}`)
func (e *Endpoints) Become(t *testing.T, world string) {
	t.Helper()
	if e.SandboxURL == "" {
		t.Skip("only the sandbox has worlds")
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, e.SandboxURL+"/world", strings.NewReader(world))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil || answer.StatusCode/100 != 2 {
		t.Fatalf("the world %s: %s, %v", world, answer.Status, err)
	}
}

func (e *Endpoints) faults(ctx context.Context, method, path string, body []byte, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, e.SandboxURL+"/faults"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(answer)
}
