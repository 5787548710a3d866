package sandbox_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/services/sandbox"
)

// ask makes a request of one of the sandbox's HTTP servers.
func ask(t *testing.T, url, method, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
	must(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, string(text)
}

// trySend sends one message to the default topic without the client's retries.
func trySend(t *testing.T, s *sandbox.Sandbox) error {
	t.Helper()
	return trySendTo(t, s.ServiceBusConnectionString())
}

func trySendTo(t *testing.T, connectionString string) error {
	t.Helper()
	bus, err := azservicebus.NewClientFromConnectionString(connectionString, &azservicebus.ClientOptions{
		RetryOptions: azservicebus.RetryOptions{MaxRetries: -1},
	})
	must(t, err)
	defer bus.Close(context.Background())
	sender, err := bus.NewSender("changes", nil)
	must(t, err)
	return sender.SendMessage(t.Context(), &azservicebus.Message{}, nil)
}

func wantBusy(t *testing.T, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "com.microsoft:server-busy") {
		t.Errorf("got %v, want server-busy", err)
	}
}

func TestFaults_AFaultIsStartedAndEndedByHTTP(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	if status, body := ask(t, s.URL(), http.MethodPost, "/faults", `{"kind":"servicebus.throttle","path":"changes"}`); status != http.StatusCreated {
		t.Fatalf("got status %d and %s, want 201", status, body)
	}
	wantBusy(t, trySend(t, s))
	if status, body := ask(t, s.URL(), http.MethodGet, "/faults", ""); status != http.StatusOK || !strings.Contains(body, `"path": "changes"`) {
		t.Errorf("got status %d and %s, want the fault", status, body)
	}
	if status, body := ask(t, s.URL(), http.MethodDelete, "/faults/1", ""); status != http.StatusOK {
		t.Errorf("got status %d and %s, want 200", status, body)
	}
	must(t, trySend(t, s))
}

func TestFaults_AFaultIsStartedAndEndedByCall(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	fault, err := s.StartFault(map[string]string{"kind": "servicebus.throttle", "path": "changes"})
	must(t, err)
	wantBusy(t, trySend(t, s))
	if fault.ID == 0 || fault.Affected != 1 || !s.EndFault(fault.ID) || s.EndFaults() != 0 {
		t.Errorf("got %+v, want one fault that lasts and is ended by its id", fault)
	}
	must(t, trySend(t, s))
	if _, err := s.StartFault("nonsense"); err == nil {
		t.Error("got no error for a body that is none, want one")
	}
	if _, err := s.StartFault(func() {}); err == nil || errors.Unwrap(err) == nil {
		t.Errorf("got %v for a value that JSON cannot write, want its error", err)
	}
}
