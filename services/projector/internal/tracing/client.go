package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// uploadTimeout bounds one upload: the default of OTEL_EXPORTER_OTLP_TIMEOUT.
const uploadTimeout = 10 * time.Second

// client uploads spans: OTLP 1.11, section OTLP/HTTP, in binary protobuf. It
// implements otlptrace.Client.
type client struct {
	http     http.Client
	endpoint string
	headers  http.Header
}

func newClient(endpoint string, headers http.Header) *client {
	c := &client{endpoint: endpoint, headers: headers.Clone()}
	c.http.Timeout = uploadTimeout
	c.http.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConns: 1, IdleConnTimeout: time.Minute}
	// A header may be a key to the collector, and is for it alone.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return errors.New("the collector redirects") }
	c.headers.Set("Content-Type", "application/x-protobuf")
	return c
}

// Start implements otlptrace.Client. There is nothing to start.
func (c *client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// TracesData has the wire form of ExportTraceServiceRequest, as its comment says.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encode traces: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("upload traces: %w", err)
	}
	request.Header = c.headers.Clone()
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("upload traces: %w", err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // so that the connection can be used again
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("upload traces: the collector answered %s", response.Status)
	}
	return nil
}
