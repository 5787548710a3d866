package app_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/app"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/settings"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// process is one publisher in a test.
type process struct {
	*app.App
	log  *syncBuffer
	stop context.CancelFunc
	done chan struct{}
	err  error // read after done
}

// configured is a configuration with short times.
func configured(servers testserver.Servers, change ...func(*config.Config)) config.Config {
	c := config.Config{
		MongoURI:             settings.Secret(servers.MongoURI),
		StateMongoURI:        settings.Secret(servers.MongoURI),
		SourceDatabase:       "shop",
		SourceCollection:     "events",
		StateDatabase:        "change_relay",
		ServiceBusConnection: settings.Secret(servers.ServiceBus),
		ServiceBusTopic:      testserver.Topic,
		InstanceID:           "a",
		LeaseName:            "publisher",
		LeaseTTL:             3 * time.Second,
		LeaseHeartbeat:       500 * time.Millisecond,
		LeaseRenewDeadline:   2 * time.Second,
		Partitions:           1,
		StreamName:           "shop.events",
		StartAt:              "now",
		OnHistoryLost:        "stop",
		OnCollectionChange:   "stop-replaced",
		HealField:            "_id",
		Mode:                 "events",
		OnOtherOperation:     "refuse-changes",
		FieldTraceParent:     "-",
		FieldAggregateID:     "aggregateId",
		FieldType:            "type",
		FieldVersion:         "version",
		FieldTime:            "time",
		FieldData:            "data",
		OnUnmappable:         "park",
		ParkLimit:            100,
		MaxInFlight:          500,
		MaxInFlightBytes:     16 << 20,
		Senders:              32,
		BatchSize:            20,
		SendTimeout:          15 * time.Second,
		SendPatience:         2 * time.Minute,
		CheckpointInterval:   20 * time.Millisecond,
		ShutdownTimeout:      10 * time.Second,
		AdminAddr:            "127.0.0.1:0",
		LogLevel:             zerolog.DebugLevel,
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func named(id string) func(*config.Config) { return func(c *config.Config) { c.InstanceID = id } }

// run starts a publisher, which is stopped with the test at the latest.
func run(t *testing.T, c config.Config) *process {
	t.Helper()
	log := &syncBuffer{}
	publisher, err := app.New(c, "test", log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{App: publisher, log: log, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = publisher.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-p.done
		if t.Failed() {
			t.Logf("log of %s:\n%s", c.InstanceID, log)
		}
	})
	return p
}

// quit stops the process and returns what Run returned.
func (p *process) quit() error {
	p.stop()
	<-p.done
	return p.err
}

func (p *process) get(t *testing.T, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.AdminAddr()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	return response.StatusCode, string(body)
}

func (p *process) status(t *testing.T) status.Status {
	t.Helper()
	_, body := p.get(t, "/status")
	var shown status.Status
	if err := json.Unmarshal([]byte(body), &shown); err != nil {
		t.Fatalf("/status is %s: %v", body, err)
	}
	return shown
}

// await waits until the status is as wanted.
func (p *process) await(t *testing.T, what string, wanted func(status.Status) bool) status.Status {
	t.Helper()
	var shown status.Status
	testserver.Eventually(t, what, func() bool {
		shown = p.status(t)
		return wanted(shown)
	})
	return shown
}

func leading(s status.Status) bool { return s.State == "publishing" && s.Term > 0 }

func sent(n int64) func(status.Status) bool { return func(s status.Status) bool { return s.Sent >= n } }

// source is the events collection of a test.
type source struct {
	*mongo.Collection
	versions map[string]int
	written  map[string][]int
}

func events(t *testing.T, servers testserver.Servers) *source {
	t.Helper()
	return &source{
		Collection: testserver.Connect(t, servers.MongoURI).Database("shop").Collection("events"),
		versions:   map[string]int{},
		written:    map[string][]int{},
	}
}

// write inserts count events of the given number of aggregates.
func (s *source) write(t *testing.T, count, aggregates int) {
	t.Helper()
	if count == 0 {
		return
	}
	var documents []any
	for n := range count {
		id := fmt.Sprintf("order-%03d", n%aggregates)
		s.versions[id]++
		s.written[id] = append(s.written[id], s.versions[id])
		documents = append(documents, bson.D{
			{Key: "aggregateId", Value: id},
			{Key: "version", Value: s.versions[id]},
			{Key: "type", Value: "OrderPlaced"},
			{Key: "time", Value: time.Now()},
			{Key: "data", Value: bson.D{{Key: "total", Value: n}}},
		})
	}
	if _, err := s.InsertMany(t.Context(), documents); err != nil {
		t.Fatal(err)
	}
}

// received are the versions of each aggregate in the order in which the topic
// accepted them first.
type received struct {
	versions map[string][]int
	total    int
	repeats  int
}

// drain receives from the plain subscription until it has the distinct events
// that were written.
func (s *source) drain(t *testing.T, servers testserver.Servers) received {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(servers.ServiceBus, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(context.WithoutCancel(t.Context())) }()
	receiver, err := client.NewReceiverForSubscription(testserver.Topic, "observer",
		&azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, versions := range s.written {
		want += len(versions)
	}
	var all []*azservicebus.ReceivedMessage
	distinct := map[string]bool{}
	for len(distinct) < want {
		some, err := receiver.ReceiveMessages(t.Context(), 500, nil)
		if err != nil {
			t.Fatalf("received %d of %d: %v", len(distinct), want, err)
		}
		for _, m := range some {
			distinct[m.MessageID] = true
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b *azservicebus.ReceivedMessage) int { return cmp.Compare(*a.SequenceNumber, *b.SequenceNumber) })
	return order(t, all)
}

func order(t *testing.T, messages []*azservicebus.ReceivedMessage) received {
	t.Helper()
	r := received{versions: map[string][]int{}, total: len(messages)}
	seen := map[string]bool{}
	for _, m := range messages {
		event, err := contract.Decode(contract.Message{
			ID: m.MessageID, SessionID: *m.SessionID, PartitionKey: *m.PartitionKey, Subject: *m.Subject,
			ContentType: *m.ContentType, Properties: m.ApplicationProperties, Body: m.Body,
		}, contract.DecodeOptions{})
		if err != nil {
			t.Fatalf("message %s: %v", m.MessageID, err)
		}
		if seen[event.ID] {
			r.repeats++
			continue
		}
		seen[event.ID] = true
		r.versions[event.AggregateID] = append(r.versions[event.AggregateID], int(event.Version.Number))
	}
	return r
}

// wantAll wants every event that was written, in order of each aggregate.
func (s *source) wantAll(t *testing.T, got received) {
	t.Helper()
	for id, want := range s.written {
		if !slices.Equal(got.versions[id], want) {
			t.Errorf("%s arrived as %v, want %v", id, got.versions[id], want)
		}
	}
	if len(got.versions) != len(s.written) {
		t.Errorf("%d aggregates arrived, want %d", len(got.versions), len(s.written))
	}
}

// syncBuffer is a buffer that may be written to by any goroutine.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// mongoProxy returns a proxy to the source, and a connection string through it.
func mongoProxy(t *testing.T, servers testserver.Servers) (*testserver.Proxy, settings.Secret) {
	t.Helper()
	proxy := testserver.NewProxy(t, mongoHost(t, servers))
	return proxy, settings.Secret("mongodb://" + proxy.Addr() + "/?directConnection=true")
}

// mongoHost is where a server's MongoDB listens.
func mongoHost(t *testing.T, servers testserver.Servers) string {
	t.Helper()
	u, err := url.Parse(servers.MongoURI)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// busProxy does the same for Service Bus.
func busProxy(t *testing.T, servers testserver.Servers) (*testserver.Proxy, settings.Secret) {
	t.Helper()
	_, after, _ := strings.Cut(servers.ServiceBus, "Endpoint=sb://")
	target, _, _ := strings.Cut(after, ";")
	target = strings.TrimSuffix(target, "/")
	proxy := testserver.NewProxy(t, target)
	return proxy, settings.Secret(strings.Replace(servers.ServiceBus, target, proxy.Addr(), 1))
}

// counted is how many messages a stopped process has sent.
func (p *process) counted(t *testing.T) int64 {
	t.Helper()
	<-p.done
	return p.Sent()
}
