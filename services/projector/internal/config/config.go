// Package config holds the projector's settings, and makes of them what the parts
// ask for: the read database, the bus, the engine, the share of memory of each.
package config

import (
	"cmp"
	"context"
	"crypto/rand"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/management"
	"changerelay/services/projector/internal/namespace"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel"
	"changerelay/services/projector/internal/redact"
	"changerelay/services/projector/internal/session"
	"changerelay/services/projector/internal/settings"
	"changerelay/services/projector/internal/tracing"
)

// Config is the projector's configuration. Durations are written with their
// unit, such as 500ms or 20s.
type Config struct {
	// ServiceBusConnectionString gives access by a shared key.
	ServiceBusConnectionString settings.Secret `envconfig:"SERVICEBUS_CONNECTION_STRING" desc:"Service Bus connection string; either this or SERVICEBUS_NAMESPACE"`
	// ServiceBusNamespace is entered with Entra ID.
	ServiceBusNamespace string `envconfig:"SERVICEBUS_NAMESPACE" desc:"host name of the Service Bus namespace, entered with Entra ID"`
	// ServiceBusManagementURL is empty for where the API commonly is.
	ServiceBusManagementURL string `envconfig:"SERVICEBUS_MANAGEMENT_URL" desc:"where the management API answers, which doctor asks; otherwise port 5300 of the same host over HTTP with UseDevelopmentEmulator=true, and the namespace over HTTPS"`
	// ServiceBusWebSockets goes through port 443.
	ServiceBusWebSockets bool `envconfig:"SERVICEBUS_WEBSOCKETS" default:"false" desc:"true connects by websockets on port 443 instead of AMQP on 5671, through the proxy that HTTPS_PROXY names"`
	// AzureCredential names the Entra ID credential.
	AzureCredential string `envconfig:"AZURE_CREDENTIAL" default:"default" desc:"Entra ID credential: default (tries them all), workload, managed, environment or cli; production names one"`
	// Topic and Subscription say what is read. The subscription requires sessions.
	Topic        string `envconfig:"SERVICEBUS_TOPIC" required:"true" desc:"topic that carries the changes"`
	Subscription string `envconfig:"SERVICEBUS_SUBSCRIPTION" required:"true" desc:"subscription to read; it must require sessions"`
	// Receiver names the adapter that takes sessions.
	Receiver string `envconfig:"SERVICEBUS_RECEIVER" default:"amqp" desc:"how sessions are taken; amqp: over AMQP itself, sdk: with the official client, several times slower with short sessions"`
	// Connections is a number of AMQP connections.
	Connections int `envconfig:"SERVICEBUS_CONNECTIONS" default:"0" desc:"connections that the sessions are spread over; 0 takes one for every 256 sessions, with SERVICEBUS_RECEIVER=sdk one for every eight"`

	// MongoURI and Database say where the read models are.
	MongoURI settings.Secret `envconfig:"READMODEL_MONGODB_URI" required:"true" desc:"MongoDB connection string of the read models"`
	Database string          `envconfig:"READMODEL_DATABASE" required:"true" desc:"database of the read models"`
	// Group is a part of collections' names.
	Group string `envconfig:"READMODEL_GROUP" desc:"name of these projectors where others share the database: halts and parked messages of each group are apart, and each needs a subscription of its own"`
	// MongoTimeout bounds one operation.
	MongoTimeout time.Duration `envconfig:"READMODEL_TIMEOUT" default:"15s" desc:"longest time for one MongoDB operation"`
	// Projections are paths.
	Projections string `envconfig:"PROJECTIONS" desc:"YAML files of projections, with commas between; without one the latest data of each aggregate is kept"`
	// LatestCollection is used without a file of projections.
	LatestCollection string `envconfig:"LATEST_COLLECTION" default:"latest" desc:"collection of the latest data, where PROJECTIONS is not set"`
	// TombstoneTTL must be longer than a message can stay in the subscription.
	TombstoneTTL time.Duration `envconfig:"TOMBSTONE_TTL" default:"720h" desc:"how long the position of a deleted document is kept; longer than any message can take"`

	// MaxSessions and MinAccepts are counts of sessions.
	MaxSessions int `envconfig:"MAX_SESSIONS" default:"64" desc:"most sessions held at once, beside those that are being given back"`
	MinAccepts  int `envconfig:"MIN_ACCEPTS" default:"8" desc:"accepts that wait for a session while there is nothing to do"`
	// AcceptTime bounds one accept.
	AcceptTime time.Duration `envconfig:"ACCEPT_TIME" default:"10s" desc:"how long one accept waits for a session; no less than four round trips to the broker, and up to 5m"`
	// BatchSize is a count of messages.
	BatchSize int `envconfig:"BATCH_SIZE" default:"100" desc:"most messages received and written at once"`
	// MaxInFlightBytes is a number of bytes.
	MaxInFlightBytes int64 `envconfig:"MAX_IN_FLIGHT_BYTES" default:"0" desc:"most bytes of messages asked for and not settled, in all sessions together, with those that a missing version's arrival redrives; one message always gets through; 0 takes a sixth of what GOMEMLIMIT or the container's memory limit, 256 MiB where neither is set, leaves beside 64 MiB and 128 KiB a session"`
	// ReceiveLinger is spent once a hold.
	ReceiveLinger time.Duration `envconfig:"RECEIVE_LINGER" default:"10ms" desc:"how long a receive waits for another message, at least; longer where messages are seen to take longer to come"`
	// HoldTime and HoldMessages are the share of a session with more to do.
	HoldTime     time.Duration `envconfig:"HOLD_TIME" default:"5s" desc:"longest time a session with messages is held before others get their turn"`
	HoldMessages int           `envconfig:"HOLD_MESSAGES" default:"5000" desc:"most messages of a session before others get their turn"`
	// KeepTime is 0 or a time in which a message may still come.
	KeepTime time.Duration `envconfig:"KEEP_TIME" default:"1s" desc:"how long an empty session that gets messages steadily is kept, while MIN_ACCEPTS accepts wait besides; 0 keeps none"`
	// LockMargin covers what a clock may be off and a write may take.
	LockMargin time.Duration `envconfig:"LOCK_MARGIN" default:"2s" desc:"how long before the end of its lock work on a session stops; at most a third of the lock"`
	// SettleTime bounds one settlement, MaxSettles those of a session at once.
	SettleTime time.Duration `envconfig:"SETTLE_TIMEOUT" default:"5s" desc:"longest time for settling one message"`
	MaxSettles int           `envconfig:"MAX_SETTLES" default:"128" desc:"settlements of one session at once"`
	// RetryTime bounds how long a batch is tried in place.
	RetryTime time.Duration `envconfig:"RETRY_TIME" default:"1m" desc:"how long a batch that cannot be stored is tried again before its session is given back"`

	// HaltAfter is a time in which others are stored.
	HaltAfter time.Duration `envconfig:"HALT_AFTER" default:"5m" desc:"how long the events of one aggregate may fail to be stored, for a reason that is not known to last, while those of others are stored; then it is halted"`

	// HaltLimit and HaltWindow bound how many aggregates are halted in how short a time.
	HaltLimit  int           `envconfig:"HALT_LIMIT" default:"100" desc:"how many aggregates may be halted, or events skipped, within HALT_WINDOW, by all replicas together; then no more sessions are taken until somebody decides; 0 for any number"`
	HaltWindow time.Duration `envconfig:"HALT_WINDOW" default:"10m" desc:"the time that HALT_LIMIT is for"`

	// OnGap and GapWait say what becomes of events behind a missing version.
	OnGap   string        `envconfig:"ON_GAP" default:"report" desc:"where a version of an aggregate is missing; report: count it and go on, wait: wait for it, then halt the aggregate until it comes"`
	GapWait time.Duration `envconfig:"GAP_WAIT" default:"10s" desc:"with ON_GAP=wait, how long an event waits for the one before it, from when it was enqueued"`

	// OnError is for what a projection's own onError does not say.
	OnError string `envconfig:"ON_ERROR" default:"halt" desc:"what becomes of an event that a projection cannot apply, where its onError does not say: skip, deadletter, halt or stop; or one for each class, such as evaluate=skip,store=halt,crash=deadletter"`

	// CrashLimit is a count of processes.
	CrashLimit int `envconfig:"CRASH_LIMIT" default:"3" desc:"processes that may die while they apply a message before it is parked; counted from the second death on"`

	// Traces: OpenTelemetry's own variables, as far as we read them ourselves.
	TracesExporter     string          `envconfig:"OTEL_TRACES_EXPORTER" default:"none" desc:"none, or otlp: a span for each message, exported by OTLP over HTTP; see docs/operations.md for more of OpenTelemetry's variables"`
	TracesDisabled     bool            `envconfig:"OTEL_SDK_DISABLED" default:"false" desc:"true switches traces off, whatever else is set"`
	OTLPEndpoint       string          `envconfig:"OTEL_EXPORTER_OTLP_ENDPOINT" default:"http://localhost:4318" desc:"URL of the collector; /v1/traces is added"`
	OTLPTracesEndpoint string          `envconfig:"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" desc:"URL for traces, as it is; instead of the one above"`
	OTLPHeaders        settings.Secret `envconfig:"OTEL_EXPORTER_OTLP_HEADERS" desc:"headers for the collector, name=value with commas between and values percent-encoded"`
	OTLPTracesHeaders  settings.Secret `envconfig:"OTEL_EXPORTER_OTLP_TRACES_HEADERS" desc:"headers for traces, instead of the ones above"`

	// InstanceID names this process in status and logs.
	InstanceID string `envconfig:"INSTANCE_ID" desc:"name of this process; HOSTNAME or a random one where not set"`
	// ShutdownTimeout bounds everything after the signal to stop.
	ShutdownTimeout time.Duration `envconfig:"SHUTDOWN_TIMEOUT" default:"20s" desc:"time for finishing and giving back what is held"`
	// AdminAddr is host:port.
	AdminAddr string `envconfig:"ADMIN_ADDR" default:":8080" desc:"address of the admin port"`
	// LogLevel is a zerolog level.
	LogLevel string `envconfig:"LOG_LEVEL" default:"info" desc:"trace, debug, info, warn or error"`
}

// Load reads the environment and the file of projections. The error holds
// every problem there is.
func Load(ctx context.Context) (Config, projection.Projections, error) {
	var cfg Config
	var projections projection.Projections
	err := settings.Load(&cfg, func() []*settings.Problem {
		problems := cfg.check()
		loaded, err := cfg.projections(ctx)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				problems = append(problems, settings.Problemf("PROJECTIONS", "%s", line))
			}
		}
		projections = loaded
		return problems
	})
	cfg.InstanceID = cmp.Or(cfg.InstanceID, os.Getenv("HOSTNAME"), rand.Text()[:8])
	return cfg, projections, err
}

// projections are those of the program and those that PROJECTIONS declares; without any,
// one that keeps the latest data.
func (c *Config) projections(ctx context.Context) (projection.Projections, error) {
	built := builtIn(ctx)
	if c.Projections == "" {
		if len(built) == 0 {
			built = projection.Projections{projection.Latest{Collection: c.LatestCollection}}
		}
		return built, built.Check()
	}
	var paths []string
	for path := range strings.SplitSeq(c.Projections, ",") {
		paths = append(paths, strings.TrimSpace(path))
	}
	declared, err := projection.LoadAll(paths)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(built, declared)
	return all, all.Check()
}

// feed is the subscription with the namespace's host name, which ports and ways to
// it do not change.
func (c *Config) feed() readmodel.Feed {
	f := readmodel.Feed{Namespace: c.ServiceBusNamespace, Topic: c.Topic, Subscription: c.Subscription}
	if access, err := namespace.Read(c.ServiceBusConnectionString.Reveal()); err == nil {
		f.Namespace = access.Host
	}
	if host, _, err := net.SplitHostPort(f.Namespace); err == nil {
		f.Namespace = host
	}
	f.Namespace = strings.ToLower(f.Namespace)
	return f
}

// ReadModel is the read model's part of the configuration.
func (c *Config) ReadModel(projections projection.Projections) readmodel.Config {
	return readmodel.Config{
		Database: c.Database, Feed: c.feed(), Group: c.Group,
		Marked: projections.OwnDocuments(), Projections: projections.Parts(), OnGap: c.OnGap, Keep: c.TombstoneTTL,
	}
}

// mostAcceptTime bounds an accept. Where there is nothing to do the end of one is all that
// shows that the engine works.
const mostAcceptTime = session.StallTime / 2

// check finds what no single field shows.
func (c *Config) check() []*settings.Problem {
	problems := c.Bus().check()
	bad := func(variable, format string, args ...any) {
		problems = append(problems, settings.Problemf(variable, format, args...))
	}
	if c.MongoURI != "" && options.Client().ApplyURI(c.MongoURI.Reveal()).Validate() != nil {
		// The driver's text may quote the password.
		bad("READMODEL_MONGODB_URI", "is not a valid MongoDB connection string")
	}
	for _, count := range []struct {
		variable    string
		value, most int
	}{
		{"MAX_SESSIONS", c.MaxSessions, 4096},
		{"MIN_ACCEPTS", c.MinAccepts, 4096},
		{"BATCH_SIZE", c.BatchSize, 2000},
		{"HOLD_MESSAGES", c.HoldMessages, 1 << 30},
		{"MAX_SETTLES", c.MaxSettles, 2000},
		{"CRASH_LIMIT", c.CrashLimit, 1000},
	} {
		if count.value < 1 || count.value > count.most {
			bad(count.variable, "is %d, not between 1 and %d", count.value, count.most)
		}
	}
	for _, duration := range []struct {
		variable string
		value    time.Duration
		least    time.Duration
	}{
		{"READMODEL_TIMEOUT", c.MongoTimeout, 100 * time.Millisecond},
		{"TOMBSTONE_TTL", c.TombstoneTTL, time.Minute},
		{"ACCEPT_TIME", c.AcceptTime, time.Second},
		{"RECEIVE_LINGER", c.ReceiveLinger, time.Millisecond},
		{"HOLD_TIME", c.HoldTime, time.Millisecond},
		{"KEEP_TIME", c.KeepTime, 0},
		{"LOCK_MARGIN", c.LockMargin, time.Millisecond},
		{"SETTLE_TIMEOUT", c.SettleTime, 10 * time.Millisecond},
		{"RETRY_TIME", c.RetryTime, time.Second},
		{"HALT_AFTER", c.HaltAfter, time.Second},
		{"HALT_WINDOW", c.HaltWindow, time.Second},
		{"GAP_WAIT", c.GapWait, 0},
		{"SHUTDOWN_TIMEOUT", c.ShutdownTimeout, time.Second},
	} {
		if duration.value < duration.least {
			bad(duration.variable, "is %s, below %s", duration.value, duration.least)
		}
	}
	if c.AcceptTime > mostAcceptTime {
		bad("ACCEPT_TIME", "is %s, above %s", c.AcceptTime, mostAcceptTime)
	}
	if strings.Trim(c.Group, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || len(c.Group) > 30 {
		bad("READMODEL_GROUP", "is %q, not up to 30 lower case letters, digits and hyphens", c.Group)
	}
	if c.HaltLimit < 0 || c.HaltLimit > 100_000 {
		bad("HALT_LIMIT", "is %d, not between 0 and 100000", c.HaltLimit)
	}
	if c.MaxInFlightBytes != 0 && c.MaxInFlightBytes < 1<<20 {
		bad("MAX_IN_FLIGHT_BYTES", "is %d, neither 0 nor at least 1048576", c.MaxInFlightBytes)
	}
	if c.Connections < 0 || c.Connections > c.MaxSessions {
		bad("SERVICEBUS_CONNECTIONS", "is %d, not between 0 and MAX_SESSIONS", c.Connections)
	}
	if _, err := management.Options(c.ServiceBusManagementURL, ""); err != nil {
		bad("SERVICEBUS_MANAGEMENT_URL", "%s", err)
	}
	if problem := settings.CheckListen("ADMIN_ADDR", c.AdminAddr); problem != nil {
		problems = append(problems, problem)
	}
	if problem := receiverProblem(c.Receiver); problem != nil {
		problems = append(problems, problem)
	}
	if problem := gapProblem(c.OnGap); problem != nil {
		problems = append(problems, problem)
	}
	if _, err := projection.ParsePolicy(c.OnError); err != nil {
		bad("ON_ERROR", "%s", err)
	}
	if _, err := zerolog.ParseLevel(c.LogLevel); err != nil {
		bad("LOG_LEVEL", "is %q, not one of trace, debug, info, warn, error", c.LogLevel)
	}
	return append(problems, c.checkTraces()...)
}

// Policed are projections under their policies, and under ON_ERROR.
func (c *Config) Policed(projections projection.Projections) projection.Policed {
	standard, _ := projection.ParsePolicy(c.OnError) // checked when the configuration was read
	return projection.Policed{Projections: projections, Default: standard}
}

// Values of ON_GAP.
const (
	GapReport = "report"
	GapWait   = "wait"
)

func gapProblem(onGap string) *settings.Problem {
	if onGap == GapReport || onGap == GapWait {
		return nil
	}
	return settings.Problemf("ON_GAP", "is %q, not one of %s, %s", onGap, GapReport, GapWait)
}

// ConnectionsOrDefault is how many connections there are.
func (c *Config) ConnectionsOrDefault() int {
	if c.Connections > 0 {
		return c.Connections
	}
	each := 256
	if c.Receiver == ReceiverSDK {
		each = 8
	}
	return (c.MaxSessions + each - 1) / each
}

// CloseTime is kept of ShutdownTimeout for closing clients after the drain.
func (c *Config) CloseTime() time.Duration { return min(c.ShutdownTimeout/5, 3*time.Second) }

// Delivery is how messages are dealt with, by a process of a name.
func (c *Config) Delivery(process string) delivery.Config {
	return delivery.Config{
		Process: process, Group: c.Group, CrashLimit: c.CrashLimit, HaltAfter: c.HaltAfter, GapWait: c.GapWait,
	}
}

// Engine is the session engine's part of the configuration.
func (c *Config) Engine() session.Config {
	e := session.Defaults()
	e.MaxSessions = c.MaxSessions
	e.AcceptFloor = c.MinAccepts
	e.AcceptTime = c.AcceptTime
	e.BatchSize = c.BatchSize
	e.MaxBytes, _ = c.Shares(MemoryLimit())
	e.RestBytes, e.Copies = eachSession, copies
	e.HoldTime = c.HoldTime
	e.HoldMessages = c.HoldMessages
	e.KeepTime = c.KeepTime
	e.LockMargin = c.LockMargin
	e.SettleTime = c.SettleTime
	e.MaxSettles = c.MaxSettles
	e.RetryTime = c.RetryTime
	e.DrainTime = c.ShutdownTimeout - c.CloseTime()
	e.CloseTime = min(e.CloseTime, e.DrainTime/3)
	return e
}

// Redactor knows the configuration's secrets.
func (c *Config) Redactor() *redact.Redactor {
	secrets := []string{
		c.MongoURI.Reveal(), c.ServiceBusConnectionString.Reveal(),
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
