// Package config holds the publisher's settings, and makes of them what the parts
// ask for: clients, the source, the mapping, the identity of the stream.
package config

import (
	"cmp"
	"crypto/rand"
	"os"
	"time"

	"github.com/rs/zerolog"

	"changerelay/services/publisher/internal/lease"
	"changerelay/services/publisher/internal/management"
	"changerelay/services/publisher/internal/redact"
	"changerelay/services/publisher/internal/settings"
	"changerelay/services/publisher/internal/tracing"
)

// Config is what the environment says. Its tags are the table of settings.
type Config struct {
	// MongoURI is the source's connection string.
	MongoURI settings.Secret `envconfig:"MONGODB_URI" required:"true" desc:"connection string of the MongoDB replica set or sharded cluster with the events"`
	// SourceDatabase is the database whose changes are read.
	SourceDatabase string `envconfig:"SOURCE_DATABASE" required:"true" desc:"database of the source"`
	// SourceCollection or SourceCollections says which of its collections.
	SourceCollection  string   `envconfig:"SOURCE_COLLECTION" desc:"the collection to read; either this or SOURCE_COLLECTIONS"`
	SourceCollections []string `envconfig:"SOURCE_COLLECTIONS" desc:"several collections, with commas between them, or * for the whole database"`
	// SourceFilter is Extended JSON.
	SourceFilter string `envconfig:"SOURCE_FILTER" desc:"a $match on change events, in Extended JSON, that the server applies; what it leaves out is never sent"`
	// Mode is events or documents.
	Mode string `envconfig:"MODE" default:"events" desc:"events: each inserted document is an event; documents: each insert, update, replacement and deletion of a document is one"`
	// StateMongoURI is the state database's connection string; MongoURI when empty.
	StateMongoURI settings.Secret `envconfig:"STATE_MONGODB_URI" desc:"connection string for lease, checkpoint and parked changes; MONGODB_URI when not set"`
	// StateDatabase holds lease, checkpoint and parked changes.
	StateDatabase string `envconfig:"STATE_DATABASE" default:"change_relay" desc:"database for lease, checkpoint and parked changes"`

	// ServiceBusConnection or ServiceBusNamespace says where the topic is.
	ServiceBusConnection settings.Secret `envconfig:"SERVICEBUS_CONNECTION_STRING" desc:"connection string of the Service Bus namespace; or set SERVICEBUS_NAMESPACE"`
	ServiceBusNamespace  string          `envconfig:"SERVICEBUS_NAMESPACE" desc:"fully qualified Service Bus namespace, for Entra ID credentials"`
	// ServiceBusManagementURL is empty for where the API commonly is.
	ServiceBusManagementURL string `envconfig:"SERVICEBUS_MANAGEMENT_URL" desc:"where the management API answers, which doctor asks; otherwise port 5300 of the same host over HTTP with UseDevelopmentEmulator=true, and the namespace over HTTPS"`
	// ServiceBusWebSockets goes through port 443.
	ServiceBusWebSockets bool `envconfig:"SERVICEBUS_WEBSOCKETS" default:"false" desc:"true connects by websockets on port 443 instead of AMQP on 5671, through the proxy that HTTPS_PROXY names"`
	// AzureCredential names the Entra ID credential.
	AzureCredential string `envconfig:"AZURE_CREDENTIAL" default:"default" desc:"Entra ID credential: default (tries them all), workload, managed, environment or cli; production names one"`
	// ServiceBusTopic is the topic to send to.
	ServiceBusTopic string `envconfig:"SERVICEBUS_TOPIC" required:"true" desc:"topic to send to"`

	// InstanceID names this instance, the same over its restarts.
	InstanceID string `envconfig:"INSTANCE_ID" desc:"name of this instance, the same over restarts; HOSTNAME, else random, when not set"`
	// InstanceIDUnique promises that no two live processes share InstanceID.
	InstanceIDUnique bool `envconfig:"INSTANCE_ID_UNIQUE" default:"false" desc:"true where the platform never runs two processes with one INSTANCE_ID (a StatefulSet): a restarted leader then leads again at once"`
	// LeaseName is the lease's record.
	LeaseName string `envconfig:"LEASE_NAME" default:"changeStreamPublisher" desc:"name of the lease; its own for each environment and stream that share a state database"`
	// LeaseTTL is how long a crashed leader's lease lasts.
	LeaseTTL time.Duration `envconfig:"LEASE_TTL" default:"15s" desc:"how long a lease lasts after a renewal; a crashed leader is followed after the rest of it"`
	// LeaseHeartbeat is the time between renewals.
	LeaseHeartbeat time.Duration `envconfig:"LEASE_HEARTBEAT" default:"5s" desc:"time between renewals"`
	// LeaseRenewDeadline is how long a leader goes on without a renewal.
	LeaseRenewDeadline time.Duration `envconfig:"LEASE_RENEW_DEADLINE" default:"10s" desc:"how long a leader goes on without a renewal; below LEASE_TTL, above LEASE_HEARTBEAT and its jitter of a tenth"`

	// Partitions is how many streams the aggregates are split into.
	Partitions int `envconfig:"PARTITIONS" default:"1" desc:"how many streams the aggregates are split into, each with a lease and a checkpoint of its own, shared out among the instances"`

	// StreamName names the checkpoint; <database>.<collection> when empty.
	StreamName string `envconfig:"STREAM_NAME" desc:"name of the checkpoint; <SOURCE_DATABASE>.<SOURCE_COLLECTION> when not set, required for a list of collections"`
	// StartAt is where a stream without a checkpoint starts.
	StartAt string `envconfig:"START_AT" default:"now" desc:"where a stream without a checkpoint starts: now, snapshot (copy what is there, then the stream from when the copy began), or an RFC 3339 time that the operation log still covers"`
	// OnHistoryLost is what is done when the source cannot show what comes next.
	OnHistoryLost string `envconfig:"ON_HISTORY_LOST" default:"stop" desc:"when the source no longer has the changes after the checkpoint, or cannot deliver the next one: stop (wait for an operator), heal (events: copy again what was written since), snapshot (copy everything), or now (skip them); each is written to stream_gaps"`
	// OnCollectionChange says what stops the stream.
	OnCollectionChange string `envconfig:"ON_COLLECTION_CHANGE" default:"stop-replaced" desc:"when a source collection is dropped, renamed or replaced as a whole: stop-replaced (stop where another one is renamed onto it or it is another one after a restart, because its documents never pass the stream), stop (at each such change), or report (go on); each is written to stream_gaps"`
	// HealField and HealMargin say what was written since a time.
	HealField  string        `envconfig:"HEAL_FIELD" default:"_id" desc:"heal: path of a date or ObjectId that says when an event was written; events where it is neither are copied, too"`
	HealMargin time.Duration `envconfig:"HEAL_MARGIN" default:"10m" desc:"heal: how much earlier than the checkpoint to begin; above the clock differences of the event writers and the time of a transaction"`
	// SnapshotRate is in documents a second; 0 is no bound.
	SnapshotRate int `envconfig:"SNAPSHOT_RATE" default:"0" desc:"most documents a second that are copied; 0 is as fast as it goes"`

	// Field paths of an event document; events mode only.
	FieldAggregateID string `envconfig:"FIELD_AGGREGATE_ID" default:"aggregateId" desc:"path of the aggregate id in an event"`
	FieldType        string `envconfig:"FIELD_TYPE" default:"type" desc:"path of the event type"`
	FieldVersion     string `envconfig:"FIELD_VERSION" default:"version" desc:"path of the aggregate's version; - when the source numbers none"`
	FieldTime        string `envconfig:"FIELD_TIME" default:"time" desc:"path of the time; - for none"`
	FieldData        string `envconfig:"FIELD_DATA" default:"data" desc:"path of the payload, a document; - for the whole event; an event without data has an empty payload, one without any other path set here cannot be mapped"`
	// OnOtherOperation is what an update, replacement or deletion of an event is.
	OnOtherOperation string `envconfig:"ON_OTHER_OPERATION" default:"refuse-changes" desc:"events mode, an event that is not inserted: refuse-changes (pass deletions over, take updates and replacements for unmappable), refuse (deletions too), or pass (over all)"`
	// Settings of documents mode only.
	DocumentAggregateID      string `envconfig:"DOCUMENT_AGGREGATE_ID" default:"_id" desc:"documents mode: path of the aggregate id in a document, a field that never changes"`
	FullDocument             string `envconfig:"FULL_DOCUMENT" default:"updateLookup" desc:"documents mode, what an update shows of the document: updateLookup (as it is when looked up), whenAvailable or required (its post-image), or off (only what changed)"`
	FullDocumentBeforeChange string `envconfig:"FULL_DOCUMENT_BEFORE_CHANGE" default:"off" desc:"documents mode, the document before a change, where the collection keeps pre-images: off, whenAvailable or required"`
	// DropFields and MaskFields do not leave the source as they are.
	DropFields []string `envconfig:"DROP_FIELDS" desc:"paths in source documents, with commas between them, that are left out of messages"`
	MaskFields []string `envconfig:"MASK_FIELDS" desc:"paths in source documents, with commas between them, whose values are sent as ***"`
	// FieldTraceParent is the path of a W3C trace context; None for none.
	FieldTraceParent string `envconfig:"FIELD_TRACEPARENT" default:"-" desc:"path of a W3C traceparent in a source document; - for none"`
	// OnUnmappable is what becomes of a change that cannot be sent.
	OnUnmappable string `envconfig:"ON_UNMAPPABLE" default:"park" desc:"a change that cannot be mapped, is too large, or is refused for longer than SEND_PATIENCE: park (keep it aside, go on) or stop"`
	// ParkLimit is the brake of ON_UNMAPPABLE=park.
	ParkLimit int64 `envconfig:"PARK_LIMIT" default:"100" desc:"how many changes may be parked and not yet replayed or discarded; the stream halts in front of the next one, until some are; 0 is no bound"`

	// MaxInFlight bounds the changes in memory, in number and in bytes.
	MaxInFlight      int   `envconfig:"MAX_IN_FLIGHT" default:"4096" desc:"most changes in flight"`
	MaxInFlightBytes int64 `envconfig:"MAX_IN_FLIGHT_BYTES" default:"0" desc:"most bytes in flight, source and message together, of all partitions, each of which has its share; 0 takes four ninths of what four fifths of GOMEMLIMIT or of the container's memory limit, 256 MiB where neither is set, leave beside 32 MiB and 16 MiB a partition, at most 32 MiB a partition; more than those four ninths, where either is set, is refused"`
	// Senders is how many sends run side by side.
	Senders int `envconfig:"SENDERS" default:"256" desc:"most sends side by side, each of another aggregate"`
	// BatchSize is how many messages of one aggregate go in one send.
	BatchSize int `envconfig:"BATCH_SIZE" default:"100" desc:"most messages of one aggregate in one send"`
	// Batching says whether a send may mix aggregates.
	Batching string `envconfig:"BATCHING" default:"session" desc:"what goes in one send: session (messages of one aggregate), or mixed (of several; only for a topic that is not partitioned)"`
	// CompressAbove is in bytes; 0 is never.
	CompressAbove int `envconfig:"COMPRESS_ABOVE" default:"65536" desc:"body size in bytes above which it is compressed with gzip; 0 is never"`
	// SendTimeout is for each MiB that a send begins.
	SendTimeout time.Duration `envconfig:"SEND_TIMEOUT" default:"15s" desc:"most time for one send of up to 1 MiB; a larger one has as much again for each further MiB that it begins"`
	// SendPatience is for one message alone.
	SendPatience time.Duration `envconfig:"SEND_PATIENCE" default:"10m" desc:"how long one message may be refused, sent alone, while the topic accepts others, before ON_UNMAPPABLE decides about it; only its own aggregate waits meanwhile"`
	// CheckpointInterval is the least time between saves of the checkpoint.
	CheckpointInterval time.Duration `envconfig:"CHECKPOINT_INTERVAL" default:"250ms" desc:"least time between saves of the checkpoint"`

	// Traces: OpenTelemetry's own variables, as far as we read them ourselves.
	TracesExporter     string          `envconfig:"OTEL_TRACES_EXPORTER" default:"none" desc:"none, or otlp: a span for each change, exported by OTLP over HTTP; see docs/operations.md for more of OpenTelemetry's variables"`
	TracesDisabled     bool            `envconfig:"OTEL_SDK_DISABLED" default:"false" desc:"true switches traces off, whatever else is set"`
	OTLPEndpoint       string          `envconfig:"OTEL_EXPORTER_OTLP_ENDPOINT" default:"http://localhost:4318" desc:"URL of the collector; /v1/traces is added"`
	OTLPTracesEndpoint string          `envconfig:"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" desc:"URL for traces, as it is; instead of the one above"`
	OTLPHeaders        settings.Secret `envconfig:"OTEL_EXPORTER_OTLP_HEADERS" desc:"headers for the collector, name=value with commas between and values percent-encoded"`
	OTLPTracesHeaders  settings.Secret `envconfig:"OTEL_EXPORTER_OTLP_TRACES_HEADERS" desc:"headers for traces, instead of the ones above"`

	// ShutdownTimeout bounds the whole stop.
	ShutdownTimeout time.Duration `envconfig:"SHUTDOWN_TIMEOUT" default:"20s" desc:"most time for a stop; below the platform's grace period"`
	// AdminAddr is where the admin port listens.
	AdminAddr string `envconfig:"ADMIN_ADDR" default:":8080" desc:"address of the admin port: /live /ready /metrics /status and a page"`
	// LogLevel is the least level that is logged.
	LogLevel zerolog.Level `envconfig:"LOG_LEVEL" default:"info" desc:"trace, debug, info, warn or error"`
}

// Load reads the configuration and reports all that is wrong with it at once.
func Load() (Config, error) {
	var c Config
	err := settings.Load(&c, c.check)
	c.InstanceID = cmp.Or(c.InstanceID, os.Getenv("HOSTNAME"), rand.Text())
	c.StreamName = cmp.Or(c.StreamName, c.SourceDatabase+"."+cmp.Or(c.SourceCollection, wholeDatabase))
	c.StateMongoURI = cmp.Or(c.StateMongoURI, c.MongoURI)
	if err == nil {
		c.MaxInFlightBytes = c.inFlightBytes(MemoryLimit())
	}
	return c, err
}

// check finds what is wrong beyond the types of single settings.
func (c *Config) check() []*settings.Problem {
	var problems []*settings.Problem
	bad := func(variable, format string, args ...any) {
		problems = append(problems, settings.Problemf(variable, format, args...))
	}
	for _, uri := range []struct {
		variable string
		value    settings.Secret
	}{{"MONGODB_URI", c.MongoURI}, {"STATE_MONGODB_URI", c.StateMongoURI}} {
		if _, err := mongoOptions(uri.value); uri.value != "" && err != nil {
			bad(uri.variable, "is not a usable connection string (mongodb://… or mongodb+srv://…): %s", err)
		}
	}
	if (c.ServiceBusConnection == "") == (c.ServiceBusNamespace == "") {
		bad("SERVICEBUS_CONNECTION_STRING", "set either this or SERVICEBUS_NAMESPACE")
	} else if _, err := c.Dial(); err != nil {
		variable := "SERVICEBUS_CONNECTION_STRING"
		if c.ServiceBusNamespace != "" {
			variable = "AZURE_CREDENTIAL"
		}
		bad(variable, "%s", err)
	}
	if c.OnUnmappable != "park" && c.OnUnmappable != "stop" {
		bad("ON_UNMAPPABLE", "is %q, neither park nor stop", c.OnUnmappable)
	}
	if err := c.LeaseConfig().Check(); err != nil {
		bad("LEASE_TTL", "%s (LEASE_TTL > LEASE_RENEW_DEADLINE > LEASE_HEARTBEAT)", err)
	}
	if c.Batching != batchSession && c.Batching != BatchMixed {
		bad("BATCHING", "is %q, neither session nor mixed", c.Batching)
	}
	if _, err := management.Options(c.ServiceBusManagementURL, ""); err != nil {
		bad("SERVICEBUS_MANAGEMENT_URL", "%s", err)
	}
	if problem := settings.CheckListen("ADMIN_ADDR", c.AdminAddr); problem != nil {
		problems = append(problems, problem)
	}
	problems = append(problems, c.checkSource()...)
	problems = append(problems, c.checkTraces()...)
	problems = append(problems, c.checkLifecycle()...)
	return append(problems, c.checkRanges()...)
}

func (c *Config) checkRanges() []*settings.Problem {
	var problems []*settings.Problem
	atLeast := func(variable string, value, least int64) {
		if value < least {
			problems = append(problems, settings.Problemf(variable, "is %d, below %d", value, least))
		}
	}
	atLeast("PARK_LIMIT", c.ParkLimit, 0)
	atLeast("PARTITIONS", int64(c.Partitions), 1)
	atLeast("MAX_IN_FLIGHT", int64(c.MaxInFlight), 1)
	if least := int64(max(c.Partitions, 1)) * leastWindow; c.MaxInFlightBytes != 0 && c.MaxInFlightBytes < least {
		problems = append(problems, settings.Problemf("MAX_IN_FLIGHT_BYTES", "is %d, neither 0 nor at least %d, 1 MiB for each partition", c.MaxInFlightBytes, least))
	}
	atLeast("SENDERS", int64(c.Senders), 1)
	atLeast("BATCH_SIZE", int64(c.BatchSize), 1)
	atLeast("COMPRESS_ABOVE", int64(c.CompressAbove), 0)
	longEnough := func(variable string, value, least time.Duration) {
		if value < least {
			problems = append(problems, settings.Problemf(variable, "is %s, below %s", value, least))
		}
	}
	longEnough("SEND_TIMEOUT", c.SendTimeout, time.Second)
	longEnough("SEND_PATIENCE", c.SendPatience, 0)
	longEnough("CHECKPOINT_INTERVAL", c.CheckpointInterval, time.Millisecond)
	longEnough("SHUTDOWN_TIMEOUT", c.ShutdownTimeout, time.Second)
	return problems
}

// LeaseConfig is what the election needs, for one incarnation of this process.
func (c *Config) LeaseConfig() lease.Config {
	return lease.Config{
		Name:          c.LeaseName,
		Holder:        lease.Holder{ID: c.InstanceID, Incarnation: rand.Text()},
		Subject:       c.StreamName,
		OwnIDUnique:   c.InstanceIDUnique,
		TTL:           c.LeaseTTL,
		RenewDeadline: c.LeaseRenewDeadline,
		Heartbeat:     c.LeaseHeartbeat,
	}
}

// Values of BATCHING.
const (
	batchSession = "session"
	BatchMixed   = "mixed"
)

// Partitioned reports whether the stream is split.
func (c *Config) Partitioned() bool { return c.Partitions > 1 }

// Redactor knows the configuration's secrets.
func (c *Config) Redactor() *redact.Redactor {
	secrets := []string{
		c.MongoURI.Reveal(), c.StateMongoURI.Reveal(), c.ServiceBusConnection.Reveal(),
		os.Getenv("AZURE_CLIENT_SECRET"), os.Getenv("AZURE_CLIENT_CERTIFICATE_PASSWORD"), // the SDK reads them by itself
	}
	for _, setting := range []settings.Secret{c.OTLPHeaders, c.OTLPTracesHeaders} {
		secrets = append(secrets, setting.Reveal())
		headers, _ := tracing.Headers(setting.Reveal()) // checked when the configuration was read
		for _, values := range headers {
			secrets = append(secrets, values...)
		}
	}
	return redact.New(secrets...)
}
