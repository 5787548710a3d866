// Package tracing follows changes through the publisher by OpenTelemetry spans,
// and exports them by OTLP over HTTP.
//
// A change has one span of kind producer, from its read until the topic has
// accepted its message. Its parent is the trace context that the event carries;
// the message carries the span's own. A send that is made again is an event of
// the same span, so no message is sent under two.
//
// Tracing never holds up or fails a change: spans wait in a bounded queue, what
// does not fit is dropped, and so is a batch that the collector does not take.
// A collector that is down is one line in the log.
//
// The exporter is the SDK's, over an HTTP client of our own: the SDK's brings
// gRPC along, and quotes a header that it cannot read on standard
// error. Sampler, queue, limits and resource are the SDK's own variables:
// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
package tracing
