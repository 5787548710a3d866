package app_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"changerelay/services/projector/internal/app"
	"changerelay/services/projector/internal/cli"
	"changerelay/services/projector/internal/command"
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
)

// environment sets what is required, and then the given pairs.
func environment(t *testing.T, pairs ...string) {
	t.Helper()
	pairs = append([]string{
		"SERVICEBUS_CONNECTION_STRING", "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=k;SharedAccessKey=" + canary + ";UseDevelopmentEmulator=true;",
		"SERVICEBUS_TOPIC", "changes", "SERVICEBUS_SUBSCRIPTION", "projector",
		"READMODEL_MONGODB_URI", "mongodb://user:" + canary + "@127.0.0.1:1/?directConnection=true&serverSelectionTimeoutMS=200", "READMODEL_DATABASE", "read",
		"ADMIN_ADDR", "127.0.0.1:0",
	}, pairs...)
	for i := 0; i < len(pairs); i += 2 {
		t.Setenv(pairs[i], pairs[i+1])
	}
}

// canary is a secret that no output may show.
const canary = "canary-7f3a91"

func TestConfig_TheDefaultsAreValid(t *testing.T) {
	environment(t)
	cfg, projections, err := config.Load(t.Context())
	if err != nil {
		t.Fatalf("got %v, want no problem", err)
	}
	if cfg.MaxSessions != 64 || cfg.BatchSize != 100 || cfg.ShutdownTimeout != 20*time.Second || cfg.InstanceID == "" {
		t.Errorf("got %+v, want the documented defaults", cfg)
	}
	if len(projections) != 1 || projections[0] != (projection.Latest{Collection: "latest"}) {
		t.Errorf("projections: got %v, want the latest data", projections)
	}
}

func TestConfig_EveryProblemIsReportedAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "projections.yaml")
	if err := os.WriteFile(file, []byte("projections:\n- name: p\n  collection: c\n  on: {E: {put: {a: 1}, set: {b: x}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	environment(t,
		"SERVICEBUS_CONNECTION_STRING", "", "SERVICEBUS_TOPIC", "", "READMODEL_MONGODB_URI", "mongodb://"+canary+":x@:bad", "PROJECTIONS", file,
		"MAX_SESSIONS", "0", "BATCH_SIZE", "many", "HOLD_TIME", "5", "SHUTDOWN_TIMEOUT", "10ms", "ACCEPT_TIME", "10m", "LOG_LEVEL", "loud", "ADMIN_ADDR", "8080", "ON_GAP", "maybe", "SERVICEBUS_RECEIVER", "pigeon",
		"OTEL_TRACES_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT", "collector", "OTEL_EXPORTER_OTLP_HEADERS", canary, "OTEL_TRACES_SAMPLER", "sometimes")
	var stdout, stderr bytes.Buffer
	if status := command.Program("test").Run(t.Context(), nil, &stdout, &stderr); status != cli.Misused {
		t.Fatalf("got status %d, want %d", status, cli.Misused)
	}
	for _, want := range []string{
		"SERVICEBUS_CONNECTION_STRING: set either this or SERVICEBUS_NAMESPACE",
		"SERVICEBUS_TOPIC: is required",
		"READMODEL_MONGODB_URI: is not a valid MongoDB connection string",
		`PROJECTIONS: ` + file + `:4: projection "p": event type "E": unknown operator "put"`,
		`PROJECTIONS: ` + file + `:4: projection "p": event type "E": set "b": expression "x"`,
		"MAX_SESSIONS: is 0, not between 1 and",
		`BATCH_SIZE: "many" is not a whole number`,
		`HOLD_TIME: "5" is not a duration`,
		"SHUTDOWN_TIMEOUT: is 10ms, below 1s",
		"ACCEPT_TIME: is 10m0s, above 5m0s",
		`LOG_LEVEL: is "loud"`,
		`ADMIN_ADDR: is "8080", not host:port`,
		`ON_GAP: is "maybe"`,
		`SERVICEBUS_RECEIVER: is "pigeon", not one of amqp, sdk`,
		"OTEL_EXPORTER_OTLP_ENDPOINT: is not a URL",
		"OTEL_EXPORTER_OTLP_HEADERS: is not a list",
		`OTEL_TRACES_SAMPLER: is "sometimes"`,
	} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("missing %q in:\n%s", want, &stderr)
		}
	}
	if strings.Contains(stderr.String(), canary) {
		t.Errorf("a secret is shown:\n%s", &stderr)
	}
}

func TestConfig_ServiceBusIsReachedInOneWay(t *testing.T) {
	for name, tt := range map[string]struct {
		pairs []string
		want  string // "" for no problem
	}{
		"both ways":                 {[]string{"SERVICEBUS_NAMESPACE", "ns.example"}, "SERVICEBUS_CONNECTION_STRING: set either this or SERVICEBUS_NAMESPACE"},
		"a string that is none":     {[]string{"SERVICEBUS_CONNECTION_STRING", canary}, "SERVICEBUS_CONNECTION_STRING: the Service Bus connection string is not valid"},
		"an unknown credential":     {[]string{"SERVICEBUS_CONNECTION_STRING", "", "SERVICEBUS_NAMESPACE", "ns.example", "AZURE_CREDENTIAL", "magic"}, `AZURE_CREDENTIAL: "magic" is not one of`},
		"a credential not set up":   {[]string{"SERVICEBUS_CONNECTION_STRING", "", "SERVICEBUS_NAMESPACE", "ns.example", "AZURE_CREDENTIAL", "workload"}, "AZURE_CREDENTIAL: no client ID"},
		"any credential":            {[]string{"SERVICEBUS_CONNECTION_STRING", "", "SERVICEBUS_NAMESPACE", "ns.example"}, ""},
		"the machine's own":         {[]string{"SERVICEBUS_CONNECTION_STRING", "", "SERVICEBUS_NAMESPACE", "ns.example", "AZURE_CREDENTIAL", "managed"}, ""},
		"websockets and the string": {[]string{"SERVICEBUS_WEBSOCKETS", "true"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, tt.pairs...)
			_, _, err := config.Load(t.Context())
			if (err != nil) != (tt.want != "") || err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), canary)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// Both servers are unreachable and both connection strings hold the canary.
func TestConfig_NoSecretIsShown(t *testing.T) {
	environment(t, "LOG_LEVEL", "trace")
	cfg, projections, err := config.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, cfg, projections)
	until(t, "it waits for MongoDB", func() bool { return p.Status().LastError != "" })
	if err := p.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	status := p.Status()
	for what, text := range map[string]string{"log": p.logs.String(), "status": status.LastError} {
		if strings.Contains(text, canary) {
			t.Errorf("the %s shows a secret: %s", what, text)
		}
	}
}

func TestConfig_AnOccupiedAdminPortIsAnError(t *testing.T) {
	t.Parallel()
	_, database := servers.Mongo(t, nil)
	p := start(t, configured(t, "replicas", database), projection.Projections{projection.Latest{Collection: "latest"}})
	cfg := configured(t, "replicas", database)
	cfg.AdminAddr = p.AdminAddr()
	if _, err := app.New(t.Context(), cfg, nil, "test", &logs{}); err == nil || !strings.Contains(err.Error(), "ADMIN_ADDR") {
		t.Errorf("got %v, want an error that names ADMIN_ADDR", err)
	}
}

func TestConfig_ParkedListPrintsOneObjectALine(t *testing.T) {
	client, database := servers.Mongo(t, nil)
	t.Setenv("READMODEL_MONGODB_URI", servers.MongoURI)
	t.Setenv("READMODEL_DATABASE", database)
	list := func() string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if _, err := command.Program("test").Do(t.Context(), []string{"parked", "list"}, &stdout, &stderr); err != nil {
			t.Fatalf("parked list: %v, %s", err, &stderr)
		}
		return stdout.String()
	}
	store := readmodel.New(client, readmodel.Config{Database: database})
	if err := store.Deploy(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	if got := list(); got != "" {
		t.Errorf("with nothing parked: got %q, want nothing", got)
	}
	if _, err := store.Parking.Halt(t.Context(), delivery.Halt{Event: *readmodeltest.Event("order-1", 10)}); err != nil {
		t.Fatal(err)
	}
	for n := range int64(3) {
		p := delivery.Parked{Event: *readmodeltest.Event("order-1", 12-n), Failed: n == 2, Reason: "because"}
		if err := store.Parking.Park(t.Context(), []delivery.Parked{p}); err != nil {
			t.Fatal(err)
		}
	}
	var versions []int64
	for line := range strings.Lines(list()) {
		var parked struct {
			Aggregate, Reason string
			Version           int64
		}
		if err := json.Unmarshal([]byte(line), &parked); err != nil || parked.Aggregate != "order-1" || parked.Reason != "because" {
			t.Errorf("line %q: got %+v and %v", line, parked, err)
		}
		versions = append(versions, parked.Version)
	}
	if !slices.Equal(versions, []int64{10, 11, 12}) {
		t.Errorf("versions: got %v, want 10, 11 and 12 in order", versions)
	}
}
