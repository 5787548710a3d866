package statuspage

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"changerelay/services/sandbox/internal/broker"
	"changerelay/services/sandbox/internal/mongoserver"
)

//go:embed page.html
var page []byte

// Status is what /status answers.
type Status struct {
	Service    string              `json:"service"`
	At         time.Time           `json:"at"`
	MongoDB    *mongoserver.Report `json:"mongodb,omitempty"`
	ServiceBus *ServiceBus         `json:"service_bus,omitempty"`
}

// ServiceBus is the part of the Service Bus stand-in.
type ServiceBus struct {
	ConnectionString string          `json:"connection_string"`
	ManagementURL    string          `json:"management_url,omitempty"`
	Namespace        broker.Snapshot `json:"namespace"`
}

// Server serves the page.
type Server struct {
	listener net.Listener
	take     func() Status
	faults   http.Handler
}

// New binds an address; port 0 takes a free one. take is asked for the present
// status, by several goroutines at once. faults serves what is at /faults.
func New(address string, take func() Status, faults http.Handler) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for the status page: %w", err)
	}
	return &Server{listener: listener, take: take, faults: faults}, nil
}

// URL is where the page is.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Timeouts of a page that is small and served to the machine's own people.
const (
	headerTimeout = 5 * time.Second
	closeTimeout  = time.Second
)

// Run serves until ctx ends and returns nil, or returns why it could not.
func (s *Server) Run(ctx context.Context) error {
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: headerTimeout}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		<-ctx.Done()
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		if server.Shutdown(closing) != nil {
			return server.Close()
		}
		return nil
	})
	group.Go(func() error {
		if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve the status page: %w", err)
		}
		return nil
	})
	return group.Wait()
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page) // a reader that has gone is nobody's loss
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		body, err := json.MarshalIndent(s.take(), "", "  ")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(body, '\n'))
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.Handle("/faults", s.faults)
	mux.Handle("/faults/", s.faults)
	return mux
}
