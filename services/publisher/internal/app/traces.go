package app

import (
	"cmp"
	"context"
	"os"
	"time"

	"changerelay/services/publisher/internal/redact"
	"changerelay/services/publisher/internal/settings"
	"changerelay/services/publisher/internal/tracing"
)

// Values of OTEL_TRACES_EXPORTER.
const (
	exportNone = "none"
	exportOTLP = "otlp"
)

// flushTimeout bounds the export of the last spans at a stop.
const flushTimeout = 2 * time.Second

func (c *Config) traced() bool { return c.TracesExporter == exportOTLP && !c.TracesDisabled }

// checkTraces finds what is wrong with the settings of traces, where they are on.
func (c *Config) checkTraces() []*settings.Problem {
	var problems []*settings.Problem
	bad := func(variable, format string, args ...any) {
		problems = append(problems, settings.Problemf(variable, format, args...))
	}
	if c.TracesExporter != exportNone && c.TracesExporter != exportOTLP {
		bad("OTEL_TRACES_EXPORTER", "is %q, neither none nor otlp", c.TracesExporter)
	}
	if !c.traced() {
		return problems
	}
	if _, err := tracing.Endpoint(c.OTLPEndpoint, c.OTLPTracesEndpoint); err != nil {
		variable := "OTEL_EXPORTER_OTLP_ENDPOINT"
		if c.OTLPTracesEndpoint != "" {
			variable = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
		}
		bad(variable, "%s", err)
	}
	for variable, headers := range map[string]settings.Secret{
		"OTEL_EXPORTER_OTLP_HEADERS": c.OTLPHeaders, "OTEL_EXPORTER_OTLP_TRACES_HEADERS": c.OTLPTracesHeaders,
	} {
		if _, err := tracing.Headers(headers.Reveal()); err != nil {
			bad(variable, "%s", err)
		}
	}
	for _, problem := range tracing.CheckEnvironment(os.Getenv) {
		bad(problem.Variable, "%s", problem.Text)
	}
	return problems
}

// redactor knows the configuration's secrets.
func (c *Config) redactor() *redact.Redactor {
	secrets := []string{
		c.MongoURI.Reveal(), c.StateMongoURI.Reveal(), c.ServiceBusConnection.Reveal(),
		os.Getenv("AZURE_CLIENT_SECRET"), os.Getenv("AZURE_CLIENT_CERTIFICATE_PASSWORD"), // the SDK reads them by itself
	}
	for _, setting := range []settings.Secret{c.OTLPHeaders, c.OTLPTracesHeaders} {
		secrets = append(secrets, setting.Reveal())
		headers, _ := tracing.Headers(setting.Reveal()) // checked when the configuration was read
		for _, values := range headers {
			secrets = append(secrets, values...)
		}
	}
	return redact.New(secrets...)
}

// trace prepares traces, where they are on.
func (a *App) trace(version string) error {
	if !a.config.traced() {
		return nil
	}
	endpoint, err := tracing.Endpoint(a.config.OTLPEndpoint, a.config.OTLPTracesEndpoint)
	if err != nil {
		return err
	}
	headers, err := tracing.Headers(cmp.Or(a.config.OTLPTracesHeaders, a.config.OTLPHeaders).Reveal())
	if err != nil {
		return err
	}
	a.traces, err = tracing.New(tracing.Options{
		Service: "publisher", Version: version, Instance: a.config.InstanceID, Endpoint: endpoint, Headers: headers,
	}, a.log)
	if err == nil {
		a.tracer = a.traces.Changes(a.config.ServiceBusTopic, a.secrets.Text)
	}
	return err
}

// flushTraces exports the last spans, in a small part of the time for a stop.
func (a *App) flushTraces(ctx context.Context) {
	if a.traces == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(flushTimeout, a.config.ShutdownTimeout/10))
	defer cancel()
	if err := a.traces.Shutdown(ctx); err != nil {
		a.log.Info().Err(err).Msg("the last traces are not exported")
	}
}
