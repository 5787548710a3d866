package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/session"
)

// Messages traces the messages of a subscription. It implements delivery.Tracer.
type Messages struct {
	tracer              trace.Tracer
	topic, subscription string
	redact              func(string) string
}

var _ delivery.Tracer = (*Messages)(nil)

// Messages returns a tracer of a subscription's messages. Texts of errors pass
// through redact.
func (p *Provider) Messages(topic, subscription string, redact func(string) string) *Messages {
	return &Messages{tracer: p.tracer, topic: topic, subscription: subscription, redact: redact}
}

// Begin implements delivery.Tracer. The names are those of the semantic
// conventions for messaging.
func (t *Messages) Begin(m *session.Message, e *contract.Event, from time.Time) delivery.Span {
	sender := m.TraceContext()
	ctx := propagation.TraceContext{}.Extract(context.Background(),
		propagation.MapCarrier{"traceparent": sender.Parent, "tracestate": sender.State})
	attributes := []attribute.KeyValue{
		attribute.String("messaging.system", "servicebus"),
		semconv.MessagingOperationTypeProcess,
		semconv.MessagingOperationName("process"),
		semconv.MessagingDestinationName(t.topic),
		semconv.MessagingDestinationSubscriptionName(t.subscription),
		semconv.MessagingMessageID(m.ID),
		semconv.MessagingMessageBodySize(len(m.Body)),
		semconv.MessagingServiceBusMessageEnqueuedTime(int(m.EnqueuedAt.Unix())),
	}
	if e != nil {
		attributes = append(attributes,
			semconv.CloudEventsEventType(e.Type),
			semconv.CloudEventsEventSubject(e.AggregateID),
			attribute.String("changerelay.operation", string(e.Operation)),
			attribute.String("changerelay.sequence", string(e.Sequence)),
			attribute.Int64("changerelay.term", e.Term),
		)
	}
	_, span := t.tracer.Start(ctx, "process "+t.topic,
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithTimestamp(from), trace.WithAttributes(attributes...))
	return &message{span: span, redact: t.redact}
}

// message is the span of one attempt at a message.
type message struct {
	span   trace.Span
	redact func(string) string
}

// Done implements delivery.Span.
func (m *message) Done(f delivery.Fate, reason string) {
	m.span.SetAttributes(attribute.String("changerelay.fate", string(f)))
	if reason != "" {
		m.span.SetStatus(codes.Error, m.redact(reason))
	}
	m.span.End()
}

// Failed implements delivery.Span.
func (m *message) Failed(err error) {
	if m.span.IsRecording() {
		m.span.SetStatus(codes.Error, m.redact(err.Error()))
	}
	m.span.End()
}
