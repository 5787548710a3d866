package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/app"
	"changerelay/services/projector/internal/config"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/settings"
)

// The tests of this package share one sandbox; each has a topic of its own.
var servers *sandboxtest.Endpoints

var topics = []string{"latest", "declared", "foreign", "poison", "restart", "replay", "replicas", "taken", "commands", "wait", "doctor", "ttl", "unreadable", "lasting", "types", "scope", "unfollowed", "deleted", "waiters", "deadwatch", "brake", "resume", "redead", "deadorder", "deadpassed", "deadgone", "deadpast", "named", "several", "heavy-amqp", "heavy-sdk", "schemas", "contradictory", "names", "gaps", "versions", "holes", "notholes", "owned", "owned-too", "place", "strange", "ledger", "doubt", "fed", "fed-too", "left", "deadothers", "group", "overtaken", "halfhalt", "rehalt", "lostparked", "forreturn", "versions-live", "place-too", "shared", "shared-too", "lost", "positions", "kept", "discarded", "deadtried", "deadheld", "olderdiscard", "gone", "stray", "deadfull", "deadodd", "deadshown", "idle", "deadlate", "deaddiscard-before", "deaddiscard-after", "bothlost", "unnoted", "lostnote", "goneback", "emptied", "deadanswer-all", "deadanswer-one", "unprintable", "behindlost", "accounts", "accounts-too", "conditions", "exceeding", "articles", "rebuild", "rebuild-cancel", "rebuild-refused", "rebuild-dead", "rebuild-arriving", "rebuild-keyed", "rebuild-taken", "rebuild-late", "rebuild-halted", "rebuild-parked", "rebuild-deadlive", "begins-report", "begins-wait", "begins-removed", "begins-live-own", "begins-live-keyed", "begins-emptied", "waits", "waits-not", "waits-group", "shape", "waits-aside", "waits-dead", "waits-deadother", "waits-earlier", "waits-too", "waits-keeper", "waits-taken", "waits-before", "waits-never", "pushes", "dashes", "verify", "verify-moves", "verify-anew", "verify-beside", "verify-waits", "verify-kept", "verify-halted", "verify-discarded", "verify-seen", "verify-fails", "rebuild-two", "rebuild-cancel-late", "rebuild-waits", "rebuild-late-switch", "rebuild-beside", "rebuild-whose", "rebuild-own", "rebuild-beginning", "rebuild-answers", "rebuild-begun", "rebuild-switches", "rebuild-by-hand", "rebuild-changed", "rebuild-wrong", "rebuild-again", "ingo", "ingo-skip", "ingo-verify", "progress", "progress-none", "wait-position", "undecodable-amqp", "undecodable-sdk", "undecodable-key-amqp", "undecodable-key-sdk", "undecodable-property-sdk", "lag-halts", "reach-amqp", "reach-sdk"}

func TestMain(m *testing.M) {
	var err error
	if servers, err = sandboxtest.Start(sandboxtest.Topics(slices.Concat(topics, deadKillTopics(), rebuildTopics, rebuildKillTopics(), mendKillTopics(), redriveTopics, sourceTopics, skippedTopics, slices.Collect(maps.Values(unconfirmed)))...)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := errors.Join(servers.Stop(), goleak.Find()); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// projector is a running projector.
type projector struct {
	*app.App
	logs *logs
	stop func() error
	// ends is an error that it may end with.
	ends error
}

// logs are the log lines of a projector.
type logs struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}

func configured(t *testing.T, topic, database string) config.Config {
	t.Helper()
	for _, name := range []string{"SERVICEBUS_CONNECTION_STRING", "READMODEL_MONGODB_URI", "SERVICEBUS_TOPIC", "SERVICEBUS_SUBSCRIPTION", "READMODEL_DATABASE"} {
		if os.Getenv(name) != "" {
			t.Fatalf("%s is set in the tests' environment", name)
		}
	}
	var cfg config.Config
	_ = settings.Load(&cfg, nil) // the defaults; what is required is missing and set below
	cfg.ServiceBusConnectionString = settings.Secret(servers.ServiceBus)
	cfg.Topic, cfg.Subscription = topic, "projector"
	cfg.MongoURI, cfg.Database = settings.Secret(servers.MongoURI), database
	cfg.InstanceID, cfg.AdminAddr = t.Name(), "127.0.0.1:0"
	cfg.MaxSessions, cfg.MinAccepts = 8, 2
	cfg.AcceptTime = 2 * time.Second
	return cfg
}

// start runs a projector until the test's end, or until stop.
func start(t *testing.T, cfg config.Config, projections projection.Projections) *projector {
	t.Helper()
	p := &projector{logs: &logs{}}
	var err error
	if p.App, err = app.New(t.Context(), cfg, projections, "test", p.logs); err != nil {
		t.Fatalf("new: %v", err)
	}
	p.LookEvery(500 * time.Millisecond)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	p.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := p.stop(); err != nil && !errors.Is(err, p.ends) {
			t.Errorf("run: %v", err)
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", cfg.InstanceID, p.logs)
		}
	})
	return p
}

// until waits until cond holds, as long as the test may run.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	limit := 90 * time.Second
	if deadline, ok := t.Deadline(); ok {
		limit = min(limit, time.Until(deadline)/2)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-ctx.Done():
			t.Fatalf("until the deadline: %s does not hold", what)
		case <-tick.C:
		}
	}
}

// event is the nth event of an aggregate.
func event(aggregate string, n int64, kind, data string) contract.Event {
	position := contract.StreamPosition(uint32(time.Now().Unix()), uint32(n), fmt.Sprintf("82%08X", n))
	return contract.Event{
		ID: fmt.Sprintf("%s-%d", aggregate, n), Source: "/shop/events", Type: kind, AggregateID: aggregate,
		Operation: contract.Insert, Time: time.Now(), Position: position,
		Version: contract.VersionOf(n), Sequence: contract.SequenceOf(contract.VersionOf(n), position), Term: 1,
		ContentType: contract.ContentTypeJSON, Data: []byte(data),
	}
}

// send sends events in order.
func send(t *testing.T, topic string, events ...contract.Event) {
	t.Helper()
	sendTo(t, servers, topic, events...)
}

// sendTo sends them by servers of a test's own.
func sendTo(t *testing.T, servers *sandboxtest.Endpoints, topic string, events ...contract.Event) {
	t.Helper()
	messages := make([]contract.Message, len(events))
	for i, e := range events {
		m, err := contract.Encode(e, contract.EncodeOptions{CompressAbove: 200})
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		messages[i] = m
	}
	sandboxtest.Send(t, servers, topic, messages...)
}

func TestApp_TheLatestDataOfEachAggregateIsKept(t *testing.T) {
	t.Parallel()
	client, database := servers.Mongo(t, nil)
	db := client.Database(database)
	const aggregates, versions = 40, 12
	for a := range aggregates {
		var events []contract.Event
		for n := range int64(versions) {
			events = append(events, event(fmt.Sprintf("order-%02d", a), n+1, "Happened", fmt.Sprintf(`{"n":%d,"text":"%s"}`, n+1, strings.Repeat("x", 100*int(n%4)))))
		}
		send(t, "latest", events...)
	}
	p := start(t, configured(t, "latest", database), projection.Projections{projection.Latest{Collection: "latest"}})
	until(t, "every document is at its last version", func() bool {
		documents := sandboxtest.Documents(t, db, "latest")
		for _, d := range documents {
			if d.Lookup("data", "n").AsInt64() != versions {
				return false
			}
		}
		return len(documents) == aggregates
	})
	until(t, "everything is completed", func() bool { return p.Status().Completed == aggregates*versions })
	if err := p.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	s := p.Status()
	if s.Received != aggregates*versions || s.Applied != aggregates*versions || s.Repeated != 0 || s.DeadLettered != 0 || s.VersionGaps != 0 || s.Inversions != 0 {
		t.Errorf("status: got %+v, want all %d messages received and applied once", s, aggregates*versions)
	}
	if s.LagSeconds == nil {
		t.Error("the lag is not known after messages were applied")
	}
}

func TestApp_TheAdminPortTellsWhatIsGoingOn(t *testing.T) {
	t.Parallel()
	_, database := servers.Mongo(t, nil)
	p := start(t, configured(t, "replicas", database), projection.Projections{projection.Latest{Collection: "latest"}})
	until(t, "the projector runs and has counted the sessions", func() bool {
		s := p.Status()
		return s.State == "running" && s.SessionsWaiting != nil && *s.SessionsWaiting == 0
	})
	if !strings.Contains(p.logs.String(), `"addr":"`+p.AdminAddr()+`"`) || !strings.Contains(p.logs.String(), `"message":"admin listening"`) {
		t.Errorf("the log does not tell the admin port's address:\n%s", p.logs)
	}
	get := func(path string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.AdminAddr()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		var body bytes.Buffer
		if _, err := body.ReadFrom(response.Body); err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, body.String()
	}
	for _, path := range []string{"/live", "/ready", "/"} {
		if code, body := get(path); code != http.StatusOK {
			t.Errorf("GET %s: got %d %s, want 200", path, code, body)
		}
	}
	code, body := get("/status")
	var status map[string]any
	if err := json.Unmarshal([]byte(body), &status); err != nil || code != http.StatusOK {
		t.Fatalf("GET /status: got %d %s", code, body)
	}
	for _, name := range []string{"service", "version", "instance", "state", "sessions", "received", "applied", "repeated", "parked", "dead_lettered", "completed"} {
		if _, there := status[name]; !there {
			t.Errorf("/status has no %s: %s", name, body)
		}
	}
	if _, body := get("/metrics"); !strings.Contains(body, "\nprojector_received_total 0") || !strings.Contains(body, "projector_sessions_held 0") {
		t.Errorf("/metrics lacks the projector's own: %s", body)
	}
}
