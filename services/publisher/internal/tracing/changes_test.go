package tracing_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/relay"
	"changerelay/services/publisher/internal/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// origin is the trace context of an event.
const origin = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// collector is an OTLP collector that keeps what it is sent.
type collector struct {
	*httptest.Server
	mu       sync.Mutex
	spans    []*tracepb.Span
	resource map[string]string
	header   http.Header
	answer   int
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{resource: map[string]string{}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var data tracepb.TracesData
	if r.URL.Path != "/v1/traces" || r.Method != http.MethodPost || proto.Unmarshal(body, &data) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.header = r.Header
	for _, one := range data.GetResourceSpans() {
		for _, a := range one.GetResource().GetAttributes() {
			c.resource[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, scope := range one.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
	w.WriteHeader(cmp.Or(c.answer, http.StatusOK))
}

// provider exports to the collector, with a header that is a secret.
func provider(t *testing.T, endpoint string, log io.Writer) *tracing.Provider {
	t.Helper()
	endpoint, err := tracing.Endpoint(endpoint, "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := tracing.New(tracing.Options{
		Service: "publisher", Version: "1.2.3", Instance: "a", Endpoint: endpoint,
		Headers: http.Header{"Api-Key": {"canary-key"}},
	}, zerolog.New(log))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func plain(text string) string { return text }

func event() contract.Event {
	return contract.Event{
		Source: contract.Source("shop", "order events"), Type: "OrderPlaced", AggregateID: "order-7",
		Operation: contract.Insert, Sequence: "0000000000000000042", Term: 3, TraceParent: origin,
	}
}

func message() *contract.Message {
	return &contract.Message{ID: "id-42", Properties: map[string]any{}, Body: []byte("{}")}
}

func shutdown(t *testing.T, p *tracing.Provider) {
	t.Helper()
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestChanges_AChangeContinuesTheEventsTraceAndItsMessageTheChanges(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	p := provider(t, c.URL, io.Discard)
	m := message()
	read := time.Unix(1763823600, 5)
	span := p.Changes("changes", plain).Begin(event(), m, read)
	span.Failed(&relay.SendError{Class: relay.Throttled, Err: errors.New("busy")})
	span.Accepted()
	shutdown(t, p)

	if len(c.spans) != 1 {
		t.Fatalf("the collector has %d spans, want 1", len(c.spans))
	}
	got := c.spans[0]
	sent := traceParent(got)
	if m.TraceContext().Parent != sent {
		t.Errorf("the message says %q, want its span %q", m.TraceContext().Parent, sent)
	}
	if want := "00-0af7651916cd43dd8448eb211c80319c"; !strings.HasPrefix(sent, want) {
		t.Errorf("the span is %q, want it in the event's trace %q", sent, want)
	}
	if want := "b7ad6b7169203331"; hexOf(got.GetParentSpanId()) != want {
		t.Errorf("its parent is %x, want that of the event, %s", got.GetParentSpanId(), want)
	}
	if got.GetName() != "send changes" || got.GetKind() != tracepb.Span_SPAN_KIND_PRODUCER || got.GetStartTimeUnixNano() != uint64(read.UnixNano()) {
		t.Errorf("got %q of kind %s from %d on, want a producer's send from the read on", got.GetName(), got.GetKind(), got.GetStartTimeUnixNano())
	}
	attributes := attributesOf(got)
	for name, want := range map[string]string{
		"messaging.system": "servicebus", "messaging.operation.type": "send", "messaging.destination.name": "changes",
		"messaging.message.id": "id-42", "db.system.name": "mongodb", "db.namespace": "shop", "db.collection.name": "order events",
		"cloudevents.event_type": "OrderPlaced", "cloudevents.event_subject": "order-7",
	} {
		if attributes[name] != want {
			t.Errorf("attribute %s is %q, want %q", name, attributes[name], want)
		}
	}
	if events := got.GetEvents(); len(events) != 1 || events[0].GetName() != "send failed" {
		t.Errorf("got events %v, want the failed send", events)
	}
	for name, want := range map[string]string{"service.name": "publisher", "service.version": "1.2.3", "service.instance.id": "a"} {
		if c.resource[name] != want {
			t.Errorf("the resource has %s %q, want %q", name, c.resource[name], want)
		}
	}
	if c.header.Get("Api-Key") != "canary-key" {
		t.Error("the configured header is missing")
	}
}

func TestChanges_AnEventWithoutATraceBeginsOne(t *testing.T) {
	t.Parallel()
	for _, parent := range []string{"", "00-xyz", strings.Repeat("0", 55)} {
		c := newCollector(t)
		p := provider(t, c.URL, io.Discard)
		e, m := event(), message()
		e.TraceParent = parent
		p.Changes("changes", plain).Begin(e, m, time.Now()).Accepted()
		shutdown(t, p)
		if len(c.spans) != 1 || len(c.spans[0].GetParentSpanId()) != 0 || m.TraceContext().Parent != traceParent(c.spans[0]) {
			t.Errorf("parent %q: got %v and a message of %+v, want one span without a parent", parent, c.spans, m.TraceContext())
		}
	}
}

func TestChanges_AParkedChangeIsAnErrorWithoutSecrets(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	p := provider(t, c.URL, io.Discard)
	redact := func(text string) string { return strings.ReplaceAll(text, "canary", "<redacted>") }
	span := p.Changes("changes", redact).Begin(event(), message(), time.Now())
	span.Failed(&relay.SendError{Err: errors.New("dial canary")})
	span.Parked("too large for canary")
	shutdown(t, p)
	got := c.spans[0]
	if got.GetStatus().GetCode() != tracepb.Status_STATUS_CODE_ERROR || got.GetStatus().GetMessage() != "too large for <redacted>" {
		t.Errorf("status is %v, want an error with its reason", got.GetStatus())
	}
	if strings.Contains(got.String(), "canary") {
		t.Errorf("the span has a secret: %s", got)
	}
}

// A span that the origin's sampler has left out is passed on, and not exported.
func TestChanges_TheOriginDecidesWhatIsSampled(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	p := provider(t, c.URL, io.Discard)
	e, m := event(), message()
	e.TraceParent = origin[:len(origin)-1] + "0"
	p.Changes("changes", plain).Begin(e, m, time.Now()).Accepted()
	shutdown(t, p)
	if len(c.spans) != 0 {
		t.Errorf("%d spans were exported, want none", len(c.spans))
	}
	if got := m.TraceContext().Parent; !strings.HasPrefix(got, origin[:36]) || !strings.HasSuffix(got, "-00") {
		t.Errorf("the message says %q, want the same trace, not sampled", got)
	}
}

func TestChanges_ACollectorThatHangsHoldsNothingUp(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
	}))
	defer server.Close()
	defer close(release)
	p := provider(t, server.URL, io.Discard)
	changes := p.Changes("changes", plain)
	for range 20_000 { // ten times what the queue holds
		changes.Begin(event(), message(), time.Now()).Accepted()
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Shutdown(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown = %v, want the end of its context", err)
	}
}

func TestChanges_ACollectorThatRefusesIsSaidWithoutItsKey(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	c.answer = http.StatusUnauthorized
	var log strings.Builder
	p := provider(t, c.URL, &log)
	for range 1000 { // two batches
		p.Changes("changes", plain).Begin(event(), message(), time.Now()).Accepted()
	}
	shutdown(t, p)
	if got := strings.Count(log.String(), "401 Unauthorized"); got != 1 || strings.Contains(log.String(), "canary") {
		t.Errorf("the log says\n%s\nwant the refusal once, without the key", log.String())
	}
}
