// Package admin is the port that operators and their machines look at:
// liveness, readiness, metrics, status as JSON, and a page for a person.
//
// Liveness says whether this process's own loops make progress; it never asks a
// dependency, or an outage of one would restart every replica at once.
// Readiness says whether the process is able to take part.
package admin

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/heptiolabs/healthcheck"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

//go:embed page.html
var page []byte

// Source is what the port shows.
type Source struct {
	// Live and Ready are the checks by name. Their error texts never leave the
	// process: /ready names the failing check, and the log says why.
	Live, Ready map[string]func() error
	// Metrics is the registry behind /metrics.
	Metrics prometheus.Gatherer
	// Status returns what /status writes as JSON. It is called for each
	// request, from any goroutine, and must not block.
	Status func() any
	// Sample returns what the page draws; nil for nothing. It must not block either.
	Sample func() Sample
	// Handlers are what else is served, by their patterns, as "GET /wait".
	Handlers map[string]http.Handler
}

// Server serves the admin port.
type Server struct {
	listener net.Listener
	http     http.Server
	history  *history
}

// New binds addr, host:port with port 0 for any.
func New(addr string, source Source) (*Server, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on ADMIN_ADDR %q: %w", addr, err)
	}
	past := &history{sample: source.Sample}
	return &Server{
		listener: listener,
		history:  past,
		http: http.Server{
			Handler:           handler(source, past),
			ReadHeaderTimeout: 5 * time.Second,
			WriteTimeout:      30 * time.Second,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    16 << 10,
		},
	}, nil
}

// Addr is the address in use.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Run serves until ctx ends. It is for one call.
func (s *Server) Run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.listener) }()
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		s.history.take(time.Now())
		select {
		case err := <-served:
			return fmt.Errorf("serve the admin port: %w", err)
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	// Requests are short; whoever is slower than this is cut off.
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := s.http.Shutdown(grace); err != nil {
		_ = s.http.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the admin port: %w", err)
	}
	return nil
}

func handler(source Source, past *history) http.Handler {
	health := healthcheck.NewHandler()
	for name, check := range source.Live {
		health.AddLivenessCheck(name, redact(check))
	}
	for name, check := range source.Ready {
		health.AddReadinessCheck(name, redact(check))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /live", health.LiveEndpoint)
	mux.HandleFunc("GET /ready", health.ReadyEndpoint)
	mux.Handle("GET /metrics", promhttp.HandlerFor(source.Metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		// The reader went away: there is nobody left to tell.
		_ = encoder.Encode(source.Status())
	})
	mux.Handle("GET /history", past)
	for pattern, handler := range source.Handlers {
		mux.Handle(pattern, handler)
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'")
		_, _ = w.Write(page)
	})
	return mux
}

var errFailing = errors.New("failing, see the log")

// redact keeps a check's own error text inside: /ready?full=1 would show it,
// and errors of a driver may quote a connection string.
func redact(check func() error) healthcheck.Check {
	return func() error {
		if check() != nil {
			return errFailing
		}
		return nil
	}
}
