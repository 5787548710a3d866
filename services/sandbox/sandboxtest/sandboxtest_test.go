package sandboxtest_test

import (
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/goleak"

	"changerelay/services/sandbox"
	"changerelay/services/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestStart_ServesClientsUntilTheTestEnds(t *testing.T) {
	t.Parallel()
	var address string
	t.Run("meanwhile", func(t *testing.T) {
		s := sandboxtest.Start(t)
		uri, err := url.Parse(s.MongoURI())
		must(t, err)
		address = uri.Host
		client, err := mongo.Connect(options.Client().ApplyURI(s.MongoURI()))
		must(t, err)
		defer func() { must(t, client.Disconnect(t.Context())) }()
		_, err = client.Database("shop").Collection("orders").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}})
		must(t, err)

		bus, err := azservicebus.NewClientFromConnectionString(s.ServiceBusConnectionString(), nil)
		must(t, err)
		defer func() { must(t, bus.Close(t.Context())) }()
		sender, err := bus.NewSender("changes", nil)
		must(t, err)
		must(t, sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("{}")}, nil))
	})
	if conn, err := net.Dial("tcp", address); err == nil {
		_ = conn.Close()
		t.Errorf("got a connection to %s after the test, want none", address)
	}
}

func TestStart_SandboxesShareNothing(t *testing.T) {
	t.Parallel()
	a, b := sandboxtest.Start(t), sandboxtest.Start(t)
	if a.MongoURI() == b.MongoURI() || a.ServiceBusConnectionString() == b.ServiceBusConnectionString() {
		t.Errorf("got %s and %s twice, want addresses of their own", a.MongoURI(), a.ServiceBusConnectionString())
	}
}

// refusing keeps what a test is told.
type refusing struct {
	testing.TB
	told string
}

func (r *refusing) Helper() {}
func (r *refusing) Fatalf(format string, args ...any) {
	r.told = format
	panic(args[0])
}

func TestStartWith_FailsTheTestForABadConfiguration(t *testing.T) {
	t.Parallel()
	r := &refusing{TB: t}
	defer func() {
		err, _ := recover().(error)
		if err == nil || !strings.Contains(r.told, "start a sandbox") || !strings.Contains(err.Error(), "3.6") {
			t.Errorf("got %q with %v, want the test to fail for the version", r.told, err)
		}
	}()
	sandboxtest.StartWith(r, sandbox.Config{MongoVersion: "3.6"})
}
