package app_test

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"changerelay/services/publisher/internal/config"
)

// required is the least that a configuration needs.
var required = map[string]string{
	"MONGODB_URI":                  "mongodb://user:canary@db.example/?replicaSet=rs0",
	"SOURCE_DATABASE":              "shop",
	"SOURCE_COLLECTION":            "events",
	"SERVICEBUS_CONNECTION_STRING": "Endpoint=sb://ns.example/;SharedAccessKeyName=n;SharedAccessKey=canary",
	"SERVICEBUS_TOPIC":             "changes",
	"HOSTNAME":                     "host-1",
	"STATE_MONGODB_URI":            "",
	"SERVICEBUS_NAMESPACE":         "",
	"INSTANCE_ID":                  "",
	"STREAM_NAME":                  "",
}

// environ sets the required variables, and over them those of change.
func environ(t *testing.T, change map[string]string) {
	t.Helper()
	for _, variables := range []map[string]string{required, change} {
		for name, value := range variables {
			t.Setenv(name, value)
		}
	}
}

func TestConfig_DefaultsAreFilledIn(t *testing.T) {
	environ(t, nil)
	c, err := config.Load()
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(c.InstanceID, c.StreamName, c.StateDatabase, c.LeaseName, c.LeaseTTL, c.LeaseHeartbeat, c.LeaseRenewDeadline,
		c.StartAt, c.OnUnmappable, c.CheckpointInterval, c.ShutdownTimeout, c.AdminAddr, c.LogLevel)
	want := fmt.Sprint("host-1", "shop.events", "change_relay", "changeStreamPublisher", 15*time.Second, 5*time.Second, 10*time.Second,
		"now", "park", 250*time.Millisecond, 20*time.Second, ":8080", "info")
	if got != want {
		t.Errorf("configuration is %s, want %s", got, want)
	}
	if c.StateMongoURI != c.MongoURI {
		t.Error("the state is not kept beside the source")
	}
}

func TestConfig_BytesInFlightFollowTheMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(205 << 19)
	defer debug.SetMemoryLimit(before)
	environ(t, map[string]string{"PARTITIONS": "2"})
	c, err := config.Load()
	if err != nil {
		t.Fatal(err)
	}
	// Four fifths of the limit, without 32 MiB and 16 MiB a partition, are 18 MiB.
	if c.MaxInFlightBytes != 8<<20 || c.WindowBytes() != 4<<20 {
		t.Errorf("got %d bytes in flight and %d of them in each of two partitions, want 8 and 4 MiB", c.MaxInFlightBytes, c.WindowBytes())
	}
}

func TestConfig_AnInstanceWithoutANameGetsOneOfItsOwn(t *testing.T) {
	environ(t, map[string]string{"HOSTNAME": ""})
	one, err := config.Load()
	if err != nil {
		t.Fatal(err)
	}
	two, err := config.Load()
	if err != nil || one.InstanceID == "" || one.InstanceID == two.InstanceID {
		t.Errorf("instance ids are %q and %q, want two different ones", one.InstanceID, two.InstanceID)
	}
}

func TestConfig_EveryProblemIsReportedAtOnce(t *testing.T) {
	problems := map[string]string{
		"MONGODB_URI":                  "postgres://user:canary@db.example",
		"SERVICEBUS_CONNECTION_STRING": "canary",
		"LEASE_TTL":                    "10s",
		"START_AT":                     "yesterday",
		"ON_UNMAPPABLE":                "ignore",
		"MAX_IN_FLIGHT":                "many",
		"SENDERS":                      "0",
		"CHECKPOINT_INTERVAL":          "soon",
		"SHUTDOWN_TIMEOUT":             "1ms",
		"LOG_LEVEL":                    "loud",
		"FIELD_AGGREGATE_ID":           "-",
		"FIELD_VERSION":                "a..b",
		"FIELD_TIME":                   "$time",
		"HEAL_FIELD":                   ".",
		"ADMIN_ADDR":                   "8080",
		"SOURCE_DATABASE":              "",
		"SOURCE_FILTER":                "{",
		"MODE":                         "both",
		"BATCHING":                     "all",
		"ON_OTHER_OPERATION":           "ignore",
		"FULL_DOCUMENT":                "yes",
		"FULL_DOCUMENT_BEFORE_CHANGE":  "updateLookup",
		"DROP_FIELDS":                  "a,a.b",
		"ON_HISTORY_LOST":              "ignore",
		"SNAPSHOT_RATE":                "-1",
		"HEAL_MARGIN":                  "-1s",
		"OTEL_TRACES_EXPORTER":         "jaeger",
		"OTEL_SDK_DISABLED":            "perhaps",
	}
	environ(t, problems)
	_, err := config.Load()
	if err == nil {
		t.Fatal("a broken configuration was taken")
	}
	for variable := range problems {
		if !strings.Contains(err.Error(), variable) {
			t.Errorf("the report does not name %s:\n%s", variable, err)
		}
	}
	if strings.Contains(err.Error(), "canary") {
		t.Errorf("the report quotes a secret:\n%s", err)
	}
}

func TestConfig_ASingleSettingThatIsWrongIsExplained(t *testing.T) {
	for name, tt := range map[string]struct {
		change map[string]string
		want   string
	}{
		"no way to Service Bus":   {map[string]string{"SERVICEBUS_CONNECTION_STRING": ""}, "set either this or SERVICEBUS_NAMESPACE"},
		"two ways to Service Bus": {map[string]string{"SERVICEBUS_NAMESPACE": "ns.example"}, "set either this or SERVICEBUS_NAMESPACE"},
		"a lease too short":       {map[string]string{"LEASE_TTL": "9s"}, "LEASE_TTL > LEASE_RENEW_DEADLINE > LEASE_HEARTBEAT"},
		"a heartbeat too slow":    {map[string]string{"LEASE_HEARTBEAT": "9500ms"}, "not above the heartbeat with its jitter"},
		"a start that is no time": {map[string]string{"START_AT": "12:00"}, "neither now, snapshot nor an RFC 3339 time"},
		"a state URI":             {map[string]string{"STATE_MONGODB_URI": "mongodb://"}, "STATE_MONGODB_URI: is not a usable connection string"},
		"no collection":           {map[string]string{"SOURCE_COLLECTION": ""}, "SOURCE_COLLECTION: set either this or SOURCE_COLLECTIONS"},
		"two kinds of collection": {map[string]string{"SOURCE_COLLECTIONS": "a,b"}, "SOURCE_COLLECTION: set either this or SOURCE_COLLECTIONS"},
		"a list without a stream": {map[string]string{"SOURCE_COLLECTION": "", "SOURCE_COLLECTIONS": "a,b"}, "STREAM_NAME: is required with a list"},
		"a list with everything":  {map[string]string{"SOURCE_COLLECTION": "", "SOURCE_COLLECTIONS": "a,*", "STREAM_NAME": "s"}, "* alone is the whole database"},
		"its own state as source": {map[string]string{"SOURCE_COLLECTION": "", "SOURCE_COLLECTIONS": "*", "STATE_DATABASE": "shop"}, "every checkpoint would be a change"},
		"a filter of everything":  {map[string]string{"SOURCE_FILTER": "{}"}, "SOURCE_FILTER: is not a filter"},
		"a copy without versions": {map[string]string{"START_AT": "snapshot", "FIELD_VERSION": "-"}, "START_AT: copies events, which needs versions"},
		"healing without them":    {map[string]string{"ON_HISTORY_LOST": "heal", "FIELD_VERSION": "-"}, "ON_HISTORY_LOST: copies events, which needs versions"},
		"healing of documents":    {map[string]string{"ON_HISTORY_LOST": "heal", "MODE": "documents"}, "heal re-reads a history"},
		"a copy with a filter":    {map[string]string{"START_AT": "snapshot", "SOURCE_FILTER": `{"ns.coll": "a"}`}, "START_AT: copies the whole collection"},
		"a copy of several":       {map[string]string{"ON_HISTORY_LOST": "snapshot", "SOURCE_COLLECTION": "", "SOURCE_COLLECTIONS": "a,b", "STREAM_NAME": "s"}, "ON_HISTORY_LOST: copies one collection"},
		"an unknown credential":   {map[string]string{"SERVICEBUS_CONNECTION_STRING": "", "SERVICEBUS_NAMESPACE": "ns.example", "AZURE_CREDENTIAL": "magic"}, "AZURE_CREDENTIAL: \"magic\" is not one of"},
		"a credential not set up": {map[string]string{"SERVICEBUS_CONNECTION_STRING": "", "SERVICEBUS_NAMESPACE": "ns.example", "AZURE_CREDENTIAL": "workload"}, "AZURE_CREDENTIAL: no client ID"},
		"traces by gRPC":          {map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL: is \"grpc\"; traces are exported by http/protobuf"},
		"traces to nowhere":       {map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT: is not a URL such as http://collector:4318"},
		"a header that is none":   {map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_HEADERS": "canary"}, "OTEL_EXPORTER_OTLP_HEADERS: is not a list such as name=value"},
		"an unknown sampler":      {map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_TRACES_SAMPLER": "sometimes"}, "OTEL_TRACES_SAMPLER: is \"sometimes\", not one of"},
		"a window too small":      {map[string]string{"MAX_IN_FLIGHT_BYTES": "1"}, "MAX_IN_FLIGHT_BYTES: is 1, neither 0 nor at least 1048576, 1 MiB for each partition"},
	} {
		t.Run(name, func(t *testing.T) {
			environ(t, tt.change)
			_, err := config.Load()
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("Load = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestConfig_AConfigurationDoesNotPrintItsSecrets(t *testing.T) {
	environ(t, nil)
	c, err := config.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if printed := fmt.Sprintf(verb, c); strings.Contains(printed, "canary") {
			t.Errorf("%s prints %s", verb, printed)
		}
	}
}

func TestConfig_TracesThatAreOffAreNotChecked(t *testing.T) {
	for _, switched := range []map[string]string{
		{"OTEL_EXPORTER_OTLP_HEADERS": "canary"},
		{"OTEL_EXPORTER_OTLP_HEADERS": "canary", "OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"},
	} {
		environ(t, switched)
		if _, err := config.Load(); err != nil {
			t.Errorf("Load with %v = %v, want nil", switched, err)
		}
	}
}

func TestConfig_EntraIDNeedsOnlyANamespace(t *testing.T) {
	for _, credential := range []string{"default", "managed", "cli"} {
		environ(t, map[string]string{"SERVICEBUS_CONNECTION_STRING": "", "SERVICEBUS_NAMESPACE": "ns.example", "AZURE_CREDENTIAL": credential})
		if _, err := config.Load(); err != nil {
			t.Errorf("Load with %s = %v, want nil", credential, err)
		}
	}
	if _, set := os.LookupEnv("SERVICEBUS_CONNECTION_STRING"); set {
		t.Error("a variable that is empty still counts as set")
	}
}
