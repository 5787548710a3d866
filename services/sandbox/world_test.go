package sandbox_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/services/sandbox"
)

func world(t *testing.T, text string) sandbox.World {
	t.Helper()
	w, err := sandbox.ReadWorld(strings.NewReader(text))
	must(t, err)
	return w
}

// impatient is a client that tries once.
func impatient(t *testing.T, s *sandbox.Sandbox) *azservicebus.Sender {
	t.Helper()
	bus, err := azservicebus.NewClientFromConnectionString(s.ServiceBusConnectionString(), &azservicebus.ClientOptions{
		RetryOptions: azservicebus.RetryOptions{MaxRetries: -1},
	})
	must(t, err)
	t.Cleanup(func() { must(t, bus.Close(context.Background())) })
	sender, err := bus.NewSender("changes", nil)
	must(t, err)
	return sender
}

func batchOf(t *testing.T, sender *azservicebus.Sender, n int) *azservicebus.MessageBatch {
	t.Helper()
	batch, err := sender.NewMessageBatch(t.Context(), nil)
	must(t, err)
	for range n {
		must(t, batch.AddMessage(&azservicebus.Message{SessionID: new("a"), MessageID: new("a")}, nil))
	}
	return batch
}

func TestWorld_CreditsAreRefusedAsTheServiceDoes(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	sender := impatient(t, s)
	batch := batchOf(t, sender, 1200)
	// The batch costs 3 credits a message, for two rules: an hour of seconds is owed then.
	s.SetWorld(world(t, `{"service_bus": {"credits_per_second": 1, "costs": {"send": 1, "filter": 1}, "busy_wait": "2s"}}`))
	must(t, sender.SendMessageBatch(t.Context(), batch, nil))
	err := sender.SendMessage(t.Context(), &azservicebus.Message{SessionID: new("a")}, nil)
	if err == nil || !strings.Contains(err.Error(), "com.microsoft:server-busy") || !strings.Contains(err.Error(), "Error code : 50009. Please wait 2 seconds") {
		t.Errorf("got %v, want com.microsoft:server-busy with the service's advice", err)
	}
	if status, _ := ask(t, s.ManagementURL(), http.MethodGet, "/changes?api-version=2021-05", ""); status != http.StatusServiceUnavailable {
		t.Errorf("got status %d from the management API, want 503", status)
	}
	s.SetWorld(sandbox.World{})
	must(t, sender.SendMessage(t.Context(), &azservicebus.Message{SessionID: new("a")}, nil))
}

func TestWorld_IsChangedByHTTPForOpenConnections(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	db := database(t, s)
	ping := func() time.Duration {
		began := time.Now()
		must(t, db.Client().Ping(t.Context(), nil))
		return time.Since(began)
	}
	ping()
	sender := impatient(t, s)
	must(t, sender.SendMessage(t.Context(), &azservicebus.Message{SessionID: new("a")}, nil))

	far := `{"name": "far", "mongodb": {"round_trip": "300ms"}, "service_bus": {"round_trip": "300ms"}}`
	if status, body := ask(t, s.URL(), http.MethodPut, "/world", far); status != http.StatusOK {
		t.Fatalf("got status %d and %s", status, body)
	}
	ping() // one direction may have begun before
	if took := ping(); took < 300*time.Millisecond {
		t.Errorf("got an answer of MongoDB after %s, want at least a round trip of 300ms", took)
	}
	must(t, sender.SendMessage(t.Context(), &azservicebus.Message{SessionID: new("a")}, nil))
	began := time.Now()
	must(t, sender.SendMessage(t.Context(), &azservicebus.Message{SessionID: new("a")}, nil))
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("got a message accepted after %s, want at least a round trip of 300ms", took)
	}
	if _, body := ask(t, s.URL(), http.MethodGet, "/world", ""); !strings.Contains(body, `"name": "far"`) || !strings.Contains(body, `"wan"`) {
		t.Errorf("got %s, want the present world and the names", body)
	}
	if status, _ := ask(t, s.URL(), http.MethodPut, "/world/standard", ""); status != http.StatusOK || s.World().Name != "standard" {
		t.Errorf("got status %d and world %s, want standard", status, s.World().Name)
	}
}

func TestWorld_RefusalsByHTTPNameTheFieldAndChangeNothing(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	for path, body := range map[string]string{"/world": `{"mongodb": {"majority": "soon"}}`, "/world/moon": ""} {
		status, text := ask(t, s.URL(), http.MethodPut, path, body)
		if status != http.StatusBadRequest || !strings.Contains(text, "moon") && !strings.Contains(text, "mongodb.majority") {
			t.Errorf("%s: got status %d and %s, want 400 that names what is wrong", path, status, text)
		}
	}
	if got := s.World().Name; got != "loopback" {
		t.Errorf("got world %s, want loopback still", got)
	}
}

func TestWorld_LimitsHoldFromTheStart(t *testing.T) {
	t.Parallel()
	w, err := sandbox.FindWorld("emulator")
	must(t, err)
	w.ServiceBus.MaxMessageBytes = 2048
	s := running(t, sandbox.Config{World: w})
	sender := impatient(t, s)
	if err := sender.SendMessage(t.Context(), &azservicebus.Message{SessionID: new("a"), Body: make([]byte, 4000)}, nil); !errors.Is(err, azservicebus.ErrMessageTooLarge) {
		t.Errorf("got %v, want that the message is too large", err)
	}
}

func TestWorld_OfAFileNamesTheFieldThatIsWrong(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "world.json")
	must(t, os.WriteFile(file, []byte(`{"base": "wan", "mongodb": {"majority": "80ms"}}`), 0o600))
	w, err := sandbox.FindWorld(file)
	must(t, err)
	if got := time.Duration(w.MongoDB.Majority); got != 80*time.Millisecond || w.ServiceBus.RoundTrip == 0 {
		t.Errorf("got a majority of %s and %+v, want 80ms in the world wan", got, w)
	}
	must(t, os.WriteFile(file, []byte(`{"mongodb": {"mayority": "80ms"}}`), 0o600))
	if _, err := sandbox.FindWorld(file); !errors.Is(err, sandbox.ErrWorld) || !strings.Contains(err.Error(), "world.json: mongodb.mayority") {
		t.Errorf("got %v, want an error that names file and field", err)
	}
	if _, err := sandbox.FindWorld("moon"); !errors.Is(err, sandbox.ErrWorld) || !strings.Contains(err.Error(), "loopback, datacenter") {
		t.Errorf("got %v, want an error that lists the names", err)
	}
}
