// Package tracing follows messages through the projector by OpenTelemetry spans,
// and exports them by OTLP over HTTP.
//
// A message has one span of kind consumer for each attempt at it, from when it
// is taken in hand until its verdict. It is a child of the span that sent the
// message, so one trace leads from the event to the read model: each message is
// processed by itself, and the semantic conventions allow a child then. A message
// that names no sender's span continues where its event came from.
//
// Tracing never holds up or fails a message: spans wait in a bounded queue, what
// does not fit is dropped, and so is a batch that the collector does not take.
// A collector that is down is one line in the log.
//
// The exporter is the SDK's, over an HTTP client of our own: the SDK's brings
// gRPC along, and quotes a header that it cannot read on standard
// error. Sampler, queue, limits and resource are the SDK's own variables:
// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
package tracing
