package tracing

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Options say who traces, and where to.
type Options struct {
	// Service, Version and Instance name the process. OTEL_SERVICE_NAME and
	// OTEL_RESOURCE_ATTRIBUTES go before them.
	Service, Version, Instance string
	// Endpoint is the collector's whole URL.
	Endpoint string
	// Headers go with every upload.
	Headers http.Header
}

// Endpoint is the URL to upload to, of the variables OTEL_EXPORTER_OTLP_ENDPOINT
// and OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: the second as it is where it is set,
// else the first with the path of traces.
func Endpoint(base, traces string) (string, error) {
	text := cmp.Or(traces, base)
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", errors.New("is not a URL such as http://collector:4318, without a user")
	}
	if traces == "" {
		u = u.JoinPath("v1", "traces")
	}
	return u.String(), nil
}

// Headers reads OTEL_EXPORTER_OTLP_HEADERS: name=value, with commas between and
// values percent-encoded. Its error quotes nothing: a header may be a secret.
func Headers(text string) (http.Header, error) {
	headers := http.Header{}
	if text == "" {
		return headers, nil
	}
	for header := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(header, "=")
		name = strings.TrimSpace(name)
		plain, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil || !found || name == "" || strings.ContainsFunc(name, notInToken) || strings.ContainsAny(plain, "\r\n\x00") {
			return nil, errors.New("is not a list such as name=value,name=value with the values percent-encoded")
		}
		headers.Set(name, plain)
	}
	return headers, nil
}

// notInToken tells what a header's name cannot hold: RFC 9110 section 5.6.2.
func notInToken(r rune) bool {
	known := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !known && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// samplers are the values of OTEL_TRACES_SAMPLER that the SDK knows.
var samplers = []string{
	"always_on", "always_off", "traceidratio",
	"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio",
}

// Problem is a variable of the SDK with a value that it would not understand.
type Problem struct{ Variable, Text string }

// CheckEnvironment finds what is wrong with the variables that the SDK reads by
// itself. It would go on with other values instead.
func CheckEnvironment(getenv func(string) string) []Problem {
	var found []Problem
	bad := func(variable, format string, args ...any) {
		found = append(found, Problem{variable, fmt.Sprintf(format, args...)})
	}
	for _, variable := range []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"} {
		if v := getenv(variable); v != "" && v != "http/protobuf" {
			bad(variable, "is %q; traces are exported by http/protobuf, usually port 4318", v)
		}
	}
	sampler := strings.ToLower(strings.TrimSpace(getenv("OTEL_TRACES_SAMPLER")))
	if sampler != "" && !slices.Contains(samplers, sampler) {
		bad("OTEL_TRACES_SAMPLER", "is %q, not one of %q", sampler, samplers)
	}
	arg := strings.TrimSpace(getenv("OTEL_TRACES_SAMPLER_ARG"))
	if share, err := strconv.ParseFloat(arg, 64); arg != "" && strings.HasSuffix(sampler, "traceidratio") && (err != nil || !(share >= 0 && share <= 1)) {
		bad("OTEL_TRACES_SAMPLER_ARG", "is %q, not a share between 0 and 1", arg)
	}
	if v := getenv("OTEL_RESOURCE_ATTRIBUTES"); v != "" && !areAttributes(v) {
		bad("OTEL_RESOURCE_ATTRIBUTES", "is not a list such as name=value,name=value with the values percent-encoded")
	}
	return found
}

func areAttributes(text string) bool {
	for pair := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(pair, "=")
		if _, err := url.PathUnescape(value); err != nil || !found || strings.TrimSpace(name) == "" {
			return false
		}
	}
	return true
}
