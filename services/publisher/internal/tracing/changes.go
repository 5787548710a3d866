package tracing

import (
	"context"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/relay"
)

// Changes traces the changes of a stream. It implements relay.Tracer.
type Changes struct {
	tracer trace.Tracer
	topic  string
	redact func(string) string
}

var _ relay.Tracer = (*Changes)(nil)

// Changes returns a tracer of changes that go to a topic. Texts of errors pass
// through redact.
func (p *Provider) Changes(topic string, redact func(string) string) *Changes {
	return &Changes{tracer: p.tracer, topic: topic, redact: redact}
}

// Begin implements relay.Tracer. The names are those of the semantic conventions
// for messaging and databases.
func (c *Changes) Begin(e contract.Event, m *contract.Message, readAt time.Time) relay.Span {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": e.TraceParent})
	database, collection := sourceOf(e.Source)
	_, span := c.tracer.Start(ctx, "send "+c.topic,
		trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithTimestamp(readAt),
		trace.WithAttributes(
			attribute.String("messaging.system", "servicebus"),
			semconv.MessagingOperationTypeSend,
			semconv.MessagingOperationName("send"),
			semconv.MessagingDestinationName(c.topic),
			semconv.MessagingMessageID(m.ID),
			semconv.MessagingMessageBodySize(len(m.Body)),
			semconv.DBSystemNameMongoDB,
			semconv.DBNamespace(database),
			semconv.DBCollectionName(collection),
			semconv.CloudEventsEventType(e.Type),
			semconv.CloudEventsEventSubject(e.AggregateID),
			attribute.String("changerelay.operation", string(e.Operation)),
			attribute.String("changerelay.sequence", string(e.Sequence)),
			attribute.Int64("changerelay.term", e.Term),
		))
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), span), carrier)
	m.SetTraceContext(contract.TraceContext{Parent: carrier["traceparent"], State: carrier["tracestate"]})
	return &change{span: span, redact: c.redact}
}

// sourceOf takes a CloudEvents source apart: see contract.Source.
func sourceOf(source string) (database, collection string) {
	first, second, _ := strings.Cut(strings.TrimPrefix(source, "/"), "/")
	return unescaped(first), unescaped(second)
}

func unescaped(segment string) string {
	if plain, err := url.PathUnescape(segment); err == nil {
		return plain
	}
	return segment
}

// change is the span of one change.
type change struct {
	span   trace.Span
	redact func(string) string
}

// Failed implements relay.Span.
func (c *change) Failed(failure *relay.SendError) {
	if c.span.IsRecording() {
		c.span.AddEvent("send failed", trace.WithAttributes(
			semconv.ErrorTypeKey.String(failure.Class.String()),
			semconv.ExceptionMessage(c.redact(failure.Err.Error())),
		))
	}
}

// Accepted implements relay.Span.
func (c *change) Accepted() { c.span.End() }

// Parked implements relay.Span.
func (c *change) Parked(reason string) {
	c.span.SetAttributes(attribute.Bool("changerelay.parked", true))
	c.span.SetStatus(codes.Error, c.redact(reason))
	c.span.End()
}
