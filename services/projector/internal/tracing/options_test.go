package tracing_test

import (
	"strings"
	"testing"

	"changerelay/services/projector/internal/tracing"
)

func TestOptions_TheEndpointOfTracesGoesBeforeTheCommonOne(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ base, traces, want string }{
		{"http://collector:4318", "", "http://collector:4318/v1/traces"},
		{"https://collector/otlp/", "", "https://collector/otlp/v1/traces"},
		{"http://collector:4318", "http://other/x", "http://other/x"},
		{"collector:4318", "", ""},
		{"http://", "", ""},
		{"http://user:key@collector", "", ""},
		{"http://collector:4318", "ftp://other", ""},
	} {
		got, err := tracing.Endpoint(tt.base, tt.traces)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%q, %q: got %q, %v, want %q", tt.base, tt.traces, got, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "key@") {
			t.Errorf("%v quotes a key", err)
		}
	}
}

func TestOptions_HeadersAreReadOrRefusedWithoutQuotingThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                      "",
		"api-key=secret":                        "secret",
		" api-key = Bearer%20secret ,other=x":   "Bearer secret",
		"api-key=a=b":                           "a=b",
		"secret":                                "refused",
		"api-key=%zzsecret":                     "refused",
		"api key=secret":                        "refused",
		"=secret":                               "refused",
		"api-key=secret%0d%0aother:%20injected": "refused",
	} {
		headers, err := tracing.Headers(text)
		switch {
		case want == "refused" && (err == nil || strings.Contains(err.Error(), "secret")):
			t.Errorf("%q: got %v, want an error that does not quote it", text, err)
		case want != "refused" && (err != nil || headers.Get("Api-Key") != want):
			t.Errorf("%q: got %q, %v, want %q", text, headers.Get("Api-Key"), err, want)
		}
	}
}

func TestOptions_WhatTheSDKWouldNotUnderstandIsSaid(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		environment map[string]string
		want        string
	}{
		{map[string]string{}, ""},
		{map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.1"}, ""},
		{map[string]string{"OTEL_TRACES_SAMPLER": "jaeger_remote"}, "OTEL_TRACES_SAMPLER"},
		{map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "10%"}, "OTEL_TRACES_SAMPLER_ARG"},
		{map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "NaN"}, "OTEL_TRACES_SAMPLER_ARG"},
		{map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, ""},
		{map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=a%20b,team=c"}, ""},
		{map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "team"}, "OTEL_RESOURCE_ATTRIBUTES"},
		{map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL"},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"}, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"},
	} {
		problems := tracing.CheckEnvironment(func(name string) string { return tt.environment[name] })
		var got []string
		for _, p := range problems {
			got = append(got, p.Variable)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%v: got %v, want %q", tt.environment, problems, tt.want)
		}
	}
}
