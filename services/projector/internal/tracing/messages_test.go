package tracing_test

import (
	"cmp"
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
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/session"
	"changerelay/services/projector/internal/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	origin = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	sender = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
)

// collector is an OTLP collector that keeps what it is sent.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	spans  []*tracepb.Span
	answer int
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var data tracepb.TracesData
	if r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &data) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range data.GetResourceSpans() {
		for _, scope := range one.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
	w.WriteHeader(cmp.Or(c.answer, http.StatusOK))
}

func provider(t *testing.T, url string, log io.Writer) *tracing.Provider {
	t.Helper()
	p, err := tracing.New(tracing.Options{
		Service: "projector", Version: "1.2.3", Instance: "a", Endpoint: url + "/v1/traces",
		Headers: http.Header{"Api-Key": {"canary-key"}},
	}, zerolog.New(log))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func redacted(text string) string { return strings.ReplaceAll(text, "canary", "<redacted>") }

func message(properties map[string]any) *session.Message {
	return &session.Message{Message: contract.Message{ID: "id-42", Properties: properties, Body: []byte("{}")}, EnqueuedAt: time.Unix(1763823600, 0)}
}

func TestMessages_AMessageContinuesTheSendersSpanElseTheEventsTrace(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	p := provider(t, c.URL, io.Discard)
	messages := p.Messages("changes", "projector", redacted)
	event := &contract.Event{Type: "OrderPlaced", AggregateID: "order-7", Operation: contract.Insert, Term: 3}
	from := time.Unix(1763823601, 5)
	both := map[string]any{"cloudEvents_traceparent": origin, "traceparent": sender}
	messages.Begin(message(both), event, from).Done(delivery.FateApplied, "")
	messages.Begin(message(map[string]any{"cloudEvents_traceparent": origin}), event, from).Done(delivery.FateRepeated, "")
	messages.Begin(message(nil), nil, from).Done(delivery.FateDeadLettered, "no canary")
	messages.Begin(message(both), event, from).Failed(errors.New("no database at canary"))
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	wants := []struct{ parent, fate, status string }{
		{"00f067aa0ba902b7", "applied", ""},
		{"b7ad6b7169203331", "repeated", ""},
		{"", "dead_lettered", "no <redacted>"},
		{"00f067aa0ba902b7", "", "no database at <redacted>"},
	}
	if len(c.spans) != len(wants) {
		t.Fatalf("the collector has %d spans, want %d", len(c.spans), len(wants))
	}
	for i, want := range wants {
		got := c.spans[i]
		attributes := attributesOf(got)
		if hexOf(got.GetParentSpanId()) != want.parent || attributes["changerelay.fate"] != want.fate || got.GetStatus().GetMessage() != want.status {
			t.Errorf("span %d: parent %x, fate %q, status %v, want %+v", i, got.GetParentSpanId(), attributes["changerelay.fate"], got.GetStatus(), want)
		}
		if want.parent != "" && !strings.HasPrefix(traceParent(got), origin[:36]) {
			t.Errorf("span %d is %s, want it in the event's trace", i, traceParent(got))
		}
		if got.GetKind() != tracepb.Span_SPAN_KIND_CONSUMER || got.GetName() != "process changes" || got.GetStartTimeUnixNano() != uint64(from.UnixNano()) {
			t.Errorf("span %d is %q of kind %s, want a consumer's process from when it was in hand", i, got.GetName(), got.GetKind())
		}
		for name, want := range map[string]string{
			"messaging.system": "servicebus", "messaging.operation.type": "process", "messaging.destination.name": "changes",
			"messaging.destination.subscription.name": "projector", "messaging.message.id": "id-42",
		} {
			if attributes[name] != want {
				t.Errorf("span %d: attribute %s is %q, want %q", i, name, attributes[name], want)
			}
		}
	}
}

func TestMessages_ACollectorThatRefusesIsSaidOnceWithoutItsKey(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	c.answer = http.StatusServiceUnavailable
	var log strings.Builder
	p := provider(t, c.URL, &log)
	messages := p.Messages("changes", "projector", redacted)
	for range 1000 { // two batches
		messages.Begin(message(nil), nil, time.Now()).Done(delivery.FateApplied, "")
	}
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(log.String(), "503 Service Unavailable"); got != 1 || strings.Contains(log.String(), "canary") {
		t.Errorf("the log says\n%s\nwant the refusal once, without the key", log.String())
	}
}
