package app_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/status"
	"changerelay/services/publisher/internal/testserver"
)

func TestTraces_ACollectorThatHangsHoldsUpNeitherChangesNorTheStop(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	asked := make(chan struct{}, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-release
	}))
	defer collector.Close()
	defer close(release)
	servers := testserver.Start(t)
	p := run(t, configured(servers, func(c *config.Config) {
		c.TracesExporter, c.OTLPEndpoint, c.OTLPHeaders = "otlp", collector.URL, "api-key=canary-key"
		c.ShutdownTimeout = 5 * time.Second // with half a second for the last traces
	}))
	p.await(t, "the publisher to lead", leading)
	source := events(t, servers)
	source.write(t, 3000, 40)
	p.await(t, "all to be finished", func(s status.Status) bool { return s.Sent == 3000 && s.InFlight == 0 })
	<-asked
	got := source.drain(t, servers)
	source.wantAll(t, got)
	if err := p.quit(); err != nil {
		t.Errorf("Run = %v, want nil after a stop", err)
	}
	if log := p.log.String(); !strings.Contains(log, "the last traces are not exported") || strings.Contains(log, "canary-key") {
		t.Errorf("the log says nothing of the last traces, or has the collector's key:\n%s", log)
	}
}
