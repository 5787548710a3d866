package config

import (
	"cmp"
	"net/http"
	"os"

	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/settings"
	"changerelay/services/projector/internal/tracing"
)

// Values of OTEL_TRACES_EXPORTER.
const (
	exportNone = "none"
	exportOTLP = "otlp"
)

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

// headers are the collector's headers.
func (c *Config) headers() http.Header {
	headers, _ := tracing.Headers(cmp.Or(c.OTLPTracesHeaders, c.OTLPHeaders).Reveal()) // checked when the configuration was read
	return headers
}

// Traces prepares traces; nil where they are off.
func (c *Config) Traces(version string, log zerolog.Logger) (*tracing.Provider, error) {
	if !c.traced() {
		return nil, nil
	}
	endpoint, err := tracing.Endpoint(c.OTLPEndpoint, c.OTLPTracesEndpoint)
	if err != nil {
		return nil, err
	}
	return tracing.New(tracing.Options{
		Service: "projector", Version: version, Instance: c.InstanceID, Endpoint: endpoint, Headers: c.headers(),
	}, log)
}
