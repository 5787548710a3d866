package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/goleak"

	"changerelay/services/sandbox"
	"changerelay/services/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running runs a sandbox until the test ends.
func running(t *testing.T, config sandbox.Config) *sandbox.Sandbox {
	t.Helper()
	return sandboxtest.StartWith(t, config)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSandbox_BothSidesServeTheirOfficialClients(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	coll := database(t, s).Collection("things")
	_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
	must(t, err)

	bus, err := azservicebus.NewClientFromConnectionString(s.ServiceBusConnectionString(), nil)
	must(t, err)
	defer bus.Close(context.Background())
	sender, err := bus.NewSender("changes", nil)
	must(t, err)
	session := "order-1"
	must(t, sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("hello"), SessionID: &session}, nil))
	receiver, err := bus.AcceptNextSessionForSubscription(t.Context(), "changes", "projector", nil)
	must(t, err)
	messages, err := receiver.ReceiveMessages(t.Context(), 1, nil)
	must(t, err)
	if got := string(messages[0].Body); got != "hello" || receiver.SessionID() != session {
		t.Errorf("got %q in session %q, want hello in %s", got, receiver.SessionID(), session)
	}
	must(t, receiver.CompleteMessage(t.Context(), messages[0], nil))
	must(t, receiver.Close(t.Context()))
}

func database(t *testing.T, s *sandbox.Sandbox) *mongo.Database {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(s.MongoURI()))
	must(t, err)
	t.Cleanup(func() { must(t, client.Disconnect(context.Background())) })
	return client.Database("test")
}

func get(t *testing.T, url string) (string, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	must(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	if response.StatusCode != http.StatusOK {
		t.Errorf("%s: got status %d, want 200", url, response.StatusCode)
	}
	return response.Header.Get("Content-Type"), string(body)
}

func TestSandbox_TheStatusPageShowsWhatIsThere(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{})
	_, err := database(t, s).Collection("things").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
	must(t, err)
	contentType, page := get(t, s.URL()+"/")
	if !strings.HasPrefix(contentType, "text/html") || !strings.Contains(page, "<title>Sandbox</title>") {
		t.Errorf("got a page of type %s, want HTML with the title", contentType)
	}
	if _, healthy := get(t, s.URL()+"/healthz"); healthy != "ok\n" {
		t.Errorf("got health %q, want ok", healthy)
	}
	_, body := get(t, s.URL()+"/status")
	var status struct {
		MongoDB struct {
			URI         string
			Collections []struct {
				Namespace string
				Documents int
				Indexes   []string
			}
			Oplog struct{ Entries int }
		}
		ServiceBus struct {
			ConnectionString string `json:"connection_string"`
			ManagementURL    string `json:"management_url"`
			Namespace        struct {
				Entities []struct{ Path, Kind string }
			}
		} `json:"service_bus"`
	}
	must(t, json.Unmarshal([]byte(body), &status))
	if status.MongoDB.URI != s.MongoURI() || status.ServiceBus.ConnectionString != s.ServiceBusConnectionString() ||
		status.ServiceBus.ManagementURL != s.ManagementURL() {
		t.Errorf("got addresses %+v, want those of the sandbox", status)
	}
	want := "[{test.things 1 [_id_]}]"
	if got := fmt.Sprint(status.MongoDB.Collections); got != want || status.MongoDB.Oplog.Entries < 3 {
		t.Errorf("got collections %s and %d oplog entries, want %s and some", got, status.MongoDB.Oplog.Entries, want)
	}
	if got := len(status.ServiceBus.Namespace.Entities); got != 3 {
		t.Errorf("got %d entities, want topic and two subscriptions", got)
	}
}

func TestSandbox_AnAddressInUseLeavesNothingBound(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	address := freeAddress(t)
	if _, err := sandbox.New(sandbox.Config{MongoAddress: address, HTTPAddress: taken.Addr().String()}); err == nil {
		t.Fatal("got no error, want one for the address in use")
	}
	again, err := net.Listen("tcp", address)
	must(t, err)
	must(t, again.Close())
}

// freeAddress returns an address that nobody listens on, below the ports that systems
// give to outgoing connections and to listeners of port 0, so that no other test is
// given it meanwhile.
func freeAddress(t *testing.T) string {
	t.Helper()
	var listener net.Listener
	err := errors.New("not tried")
	for tries := 0; err != nil && tries < 100; tries++ {
		listener, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000)))
	}
	must(t, err)
	must(t, listener.Close())
	return listener.Addr().String()
}

func TestSandbox_AConfigurationThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := sandbox.New(sandbox.Config{Entities: strings.NewReader("{")}); !errors.Is(err, sandbox.ErrEntities) {
		t.Errorf("got %v, want ErrEntities", err)
	}
}

// TestSandbox_TheDataDirectoryKeepsBothSides restarts a sandbox.
func TestSandbox_TheDataDirectoryKeepsBothSides(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var token bson.Raw
	t.Run("first", func(t *testing.T) {
		s := running(t, sandbox.Config{DataDir: dir})
		coll := database(t, s).Collection("things")
		stream, err := coll.Watch(t.Context(), mongo.Pipeline{})
		must(t, err)
		token = stream.ResumeToken()
		must(t, stream.Close(t.Context()))
		_, err = coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
		must(t, err)
		send(t, s, "kept")
	})
	t.Run("second", func(t *testing.T) {
		s := running(t, sandbox.Config{DataDir: dir})
		stream, err := database(t, s).Collection("things").Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(token))
		must(t, err)
		if !stream.Next(t.Context()) || stream.Current.Lookup("documentKey", "_id").Int32() != 1 {
			t.Errorf("got event %s and %v, want that of the first life", stream.Current, stream.Err())
		}
		must(t, stream.Close(t.Context()))
		if got := receive(t, s); got != "kept" {
			t.Errorf("got message %q, want that of the first life", got)
		}
	})
}

func send(t *testing.T, s *sandbox.Sandbox, body string) {
	t.Helper()
	bus, err := azservicebus.NewClientFromConnectionString(s.ServiceBusConnectionString(), nil)
	must(t, err)
	defer bus.Close(context.Background())
	sender, err := bus.NewSender("changes", nil)
	must(t, err)
	session := "s"
	must(t, sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte(body), SessionID: &session}, nil))
}

func receive(t *testing.T, s *sandbox.Sandbox) string {
	t.Helper()
	bus, err := azservicebus.NewClientFromConnectionString(s.ServiceBusConnectionString(), nil)
	must(t, err)
	defer bus.Close(context.Background())
	receiver, err := bus.NewReceiverForSubscription("changes", "observer", nil)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	messages, err := receiver.ReceiveMessages(ctx, 1, nil)
	must(t, err)
	return string(messages[0].Body)
}
