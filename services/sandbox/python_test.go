package sandbox_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox"
)

// pythonEntities are what the scripts below testdata/python use.
const pythonEntities = `{"UserConfig":{"Namespaces":[{"Name":"ns",
	"Queues":[{"Name":"plain","Properties":{}}],
	"Topics":[{"Name":"changes","Properties":{},"Subscriptions":[
		{"Name":"projector","Properties":{"RequiresSession":true}},{"Name":"observer","Properties":{}}]}]}],
	"Logging":{"Type":"File"}}}`

// python is an interpreter that has the modules, and skips the test where there is none.
func python(t *testing.T, modules ...string) string {
	t.Helper()
	for _, candidate := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), candidate, "-c", "import "+strings.Join(modules, ", ")).Run() == nil {
			return candidate
		}
	}
	t.Skipf("NOT RUN: there is no Python with %s (apt-get install python3-azure python3-pymongo python3-qpid-proton)", strings.Join(modules, " and "))
	return ""
}

// script is a command that finds the sandbox in its environment.
func script(t *testing.T, s *sandbox.Sandbox, interpreter, name string, args ...string) (command *exec.Cmd, output *bytes.Buffer) {
	t.Helper()
	certificate := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(certificate, s.ServiceBusCertificatePEM(), 0o600))
	address, _, _ := strings.Cut(strings.TrimPrefix(s.ServiceBusConnectionString(), "Endpoint=sb://"), ";")
	_, port, _ := strings.Cut(address, ":")
	command = exec.CommandContext(t.Context(), interpreter, append([]string{filepath.Join("testdata", "python", name)}, args...)...)
	command.Env = append(os.Environ(), "ADDRESS="+address, "ENDPOINT=https://localhost:"+port, "CERTIFICATE="+certificate,
		"REQUESTS_CA_BUNDLE="+certificate, "CONNECTION="+connectionString)
	output = &bytes.Buffer{}
	command.Stdout, command.Stderr = output, output
	return command, output
}

// connectionString is that of a namespace in the cloud: where it really is, the scripts say by the SDK's custom endpoint.
const connectionString = "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE"

func TestPython_TheOfficialSDKDoesAllItDocuments(t *testing.T) {
	t.Parallel()
	interpreter := python(t, "azure.servicebus", "uamqp")
	for _, transport := range []string{"Amqp", "AmqpOverWebsocket"} {
		s := running(t, sandbox.Config{Entities: strings.NewReader(pythonEntities), CheckSAS: true})
		command, output := script(t, s, interpreter, "servicebus.py", transport)
		if err := command.Run(); err != nil {
			t.Errorf("%s: %v after\n%s", transport, err, output)
		}
	}
}

func TestPython_ProtonIsServedInEverySettlementMode(t *testing.T) {
	t.Parallel()
	interpreter := python(t, "proton")
	s := running(t, sandbox.Config{Entities: strings.NewReader(pythonEntities), CheckSAS: true})
	command, output := script(t, s, interpreter, "qpid.py")
	if err := command.Run(); err != nil {
		t.Errorf("%v after\n%s", err, output)
	}
}

func TestPython_TheAMQPLibraryOfTheCurrentSDKsIsServed(t *testing.T) {
	t.Parallel()
	interpreter := python(t, "azure.eventhub._pyamqp")
	s := running(t, sandbox.Config{Entities: strings.NewReader(pythonEntities)})
	command, output := script(t, s, interpreter, "pyamqp.py")
	if err := command.Run(); err != nil {
		t.Errorf("%v after\n%s", err, output)
	}
}

// The example must count each event once, whatever is delivered again.
func TestPython_TheContractsExampleRunsAsItIsWritten(t *testing.T) {
	t.Parallel()
	interpreter := python(t, "azure.servicebus", "uamqp", "pymongo")
	s := running(t, sandbox.Config{Entities: strings.NewReader(pythonEntities)})
	example := filepath.Join(t.TempDir(), "example.py")
	must(t, os.WriteFile(example, contractExample(t), 0o600))
	sendEvents(t, s)

	command, output := script(t, s, interpreter, "example.py", example, connectionString, "changes", "projector", s.MongoURI())
	must(t, command.Start())
	done := make(chan error, 1)
	go func() { done <- command.Wait() }()
	orders := database(t, s).Client().Database("reporting").Collection("orders")
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		var order struct {
			Events, Total int
			Sequence      string
		}
		_ = orders.FindOne(t.Context(), bson.D{{Key: "_id", Value: "order-1"}}).Decode(&order)
		if order.Sequence == "3" {
			if order.Events != 3 || order.Total != 60 {
				t.Errorf("got %d events with a total of %d, want 3 with 60", order.Events, order.Total)
			}
			break
		}
		select {
		case err := <-done:
			t.Fatalf("the example ended: %v\n%s", err, output)
		case <-ticker.C:
		}
	}
	must(t, command.Process.Kill())
	<-done
}

// contractExample is the one block of Python in the contract's documentation.
func contractExample(t *testing.T) []byte {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "message-contract.md"))
	must(t, err)
	_, rest, found := bytes.Cut(page, []byte("```python\n"))
	code, _, closed := bytes.Cut(rest, []byte("```\n"))
	if !found || !closed || bytes.Contains(code, []byte("```")) {
		t.Fatal("docs/message-contract.md has no block of Python")
	}
	return code
}

// sendEvents sends three events of an order, the second of them twice.
func sendEvents(t *testing.T, s *sandbox.Sandbox) {
	t.Helper()
	bus, err := azservicebus.NewClientFromConnectionString(s.ServiceBusConnectionString(), nil)
	must(t, err)
	defer bus.Close(context.Background())
	sender, err := bus.NewSender("changes", nil)
	must(t, err)
	for _, sequence := range []string{"1", "2", "2", "3"} {
		must(t, sender.SendMessage(t.Context(), &azservicebus.Message{
			SessionID: new("order-1"), Body: []byte(`{"total": ` + sequence + `0}`),
			ApplicationProperties: map[string]any{
				"cloudEvents_contractversion": "1", "cloudEvents_subject": "order-1",
				"cloudEvents_sequence": sequence, "cloudEvents_type": "OrderChanged",
			},
		}, nil))
	}
}
