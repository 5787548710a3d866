package tracing

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Provider makes spans and exports them aside.
type Provider struct {
	sdk      *sdktrace.TracerProvider
	tracer   trace.Tracer
	exporter *watched
}

// New returns a provider. It makes no round trip. It must be shut down.
func New(o Options, log zerolog.Logger) (*Provider, error) {
	who, err := resource.Merge(resource.NewSchemaless(
		semconv.ServiceName(o.Service),
		semconv.ServiceVersion(o.Version),
		semconv.ServiceInstanceID(o.Instance),
	), resource.Environment())
	if err != nil {
		return nil, fmt.Errorf("describe this process for traces: %w", err)
	}
	client := newClient(o.Endpoint, o.Headers)
	exporter := &watched{Exporter: otlptrace.NewUnstarted(client), client: client, log: log}
	sdk := sdktrace.NewTracerProvider(sdktrace.WithResource(who), sdktrace.WithBatcher(exporter))
	tracer := sdk.Tracer("changerelay/"+o.Service, trace.WithInstrumentationVersion(o.Version))
	return &Provider{sdk: sdk, tracer: tracer, exporter: exporter}, nil
}

// Shutdown exports what is left until ctx ends. Nothing may be traced after it.
func (p *Provider) Shutdown(ctx context.Context) error {
	defer p.exporter.over.Store(true) // the SDK would go on in the background
	return p.sdk.Shutdown(ctx)
}

// watched is an exporter that says once that an outage has begun, and once that
// it is over. The batch processor calls it for one batch at a time.
type watched struct {
	*otlptrace.Exporter
	client  *client
	over    atomic.Bool // drops all from then on
	log     zerolog.Logger
	failing bool
}

// ExportSpans implements sdktrace.SpanExporter. It returns no error: the SDK
// would write it to standard error, for each batch.
func (w *watched) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if w.over.Load() {
		return nil
	}
	err := w.Exporter.ExportSpans(ctx, spans)
	switch {
	case err != nil && !w.failing:
		w.log.Warn().Err(err).Msg("traces not exported, dropping them until it works")
	case err == nil && w.failing:
		w.log.Info().Msg("traces exported again")
	}
	w.failing = err != nil
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (w *watched) Shutdown(ctx context.Context) error { return w.client.Stop(ctx) }
