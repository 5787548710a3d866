package scenario

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"changerelay/services/e2e/internal/harness/cluster"
)

// collector is an OTLP collector that keeps the spans of one trace.
type collector struct {
	trace string

	mu    sync.Mutex
	spans map[string]*tracepb.Span // by kind; guarded by mu
}

func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var data tracepb.TracesData
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &data) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range data.GetResourceSpans() {
		for _, scope := range one.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				if hex.EncodeToString(span.GetTraceId()) == c.trace {
					c.spans[span.GetKind().String()] = span
				}
			}
		}
	}
}

func (c *collector) span(kind tracepb.Span_SpanKind) *tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spans[kind.String()]
}

// One trace leads from the event through the publisher and the topic to the
// read model.
func TestTraces_ATraceLeadsFromTheEventToTheReadModel(t *testing.T) {
	t.Parallel()
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	c := &collector{trace: trace, spans: map[string]*tracepb.Span{}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	traces := map[string]string{
		"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": server.URL, "OTEL_BSP_SCHEDULE_DELAY": "50",
		"OTEL_EXPORTER_OTLP_HEADERS": "api-key=canary-of-the-collector",
	}
	r := start(t, func(cfg *cluster.Config) {
		cfg.Publishers, cfg.Projectors = 1, 1
		cfg.ProjectorEnv = traces
		cfg.PublisherEnv = map[string]string{"FIELD_TRACEPARENT": "meta.trace"}
		maps.Copy(cfg.PublisherEnv, traces)
	})
	names := r.Names()
	_, err := r.witness.Client.Database(names.SourceDatabase).Collection(names.SourceCollection).InsertOne(within(t), bson.D{
		{Key: "_id", Value: "traced/1"},
		{Key: "aggregateId", Value: "traced"},
		{Key: "version", Value: int64(1)},
		{Key: "type", Value: "OfNoProjection"},
		{Key: "time", Value: time.Now()},
		{Key: "data", Value: bson.D{}},
		{Key: "meta", Value: bson.D{{Key: "trace", Value: fmt.Sprintf("00-%s-%s-01", trace, parent)}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "both services to export their spans", func(context.Context) (bool, string) {
		return c.span(tracepb.Span_SPAN_KIND_PRODUCER) != nil && c.span(tracepb.Span_SPAN_KIND_CONSUMER) != nil, "no span"
	})
	sent, processed := c.span(tracepb.Span_SPAN_KIND_PRODUCER), c.span(tracepb.Span_SPAN_KIND_CONSUMER)
	if got := hex.EncodeToString(sent.GetParentSpanId()); got != parent {
		t.Errorf("the publisher's span is a child of %s, want the event's %s", got, parent)
	}
	if got, want := hex.EncodeToString(processed.GetParentSpanId()), hex.EncodeToString(sent.GetSpanId()); got != want {
		t.Errorf("the projector's span is a child of %s, want the publisher's %s", got, want)
	}
	for _, n := range append(r.Publishers, r.Projectors...) {
		if strings.Contains(n.Log(), "canary-of-the-collector") {
			t.Errorf("the log of %s has the collector's key", n.Name)
		}
	}
}
