package management

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"changerelay/services/sandbox/internal/servicebus/broker"
	"changerelay/services/sandbox/internal/servicebus/sas"
)

// Config of a Server.
type Config struct {
	// Listener has the clients' connections. The server closes it.
	Listener net.Listener
	// CertificatePEM is what a client has to trust, for whoever asks for it.
	CertificatePEM []byte
	// WebSocket serves the clients that want AMQP over websockets; it may be nil.
	WebSocket http.Handler
	// Keys are whose tokens are good; nil asks for none.
	Keys sas.Keys
	Log  zerolog.Logger
}

// Server is the API on a listener.
type Server struct {
	listener net.Listener
	http     *http.Server
}

// webSocketPath is where clients open websockets, as at the service.
const webSocketPath = "/$servicebus/websocket"

// Times that a client may take.
const (
	headerTimeout   = 10 * time.Second
	shutdownTimeout = 2 * time.Second
)

// New makes a server. Run serves.
func New(b *broker.Broker, cfg Config) *Server {
	mux := http.NewServeMux()
	mux.Handle("/", NewHandler(b, cfg.Keys, cfg.Log))
	mux.HandleFunc("GET /$certificate", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-pem-file")
		_, _ = w.Write(cfg.CertificatePEM)
	})
	if cfg.WebSocket != nil {
		mux.Handle(webSocketPath, cfg.WebSocket)
		mux.Handle(webSocketPath+"/", cfg.WebSocket)
	}
	return &Server{
		listener: cfg.Listener,
		http: &http.Server{
			Handler:           mux,
			ReadHeaderTimeout: headerTimeout,
		},
	}
}

// Run serves until ctx ends. It is called once.
func (s *Server) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	s.http.BaseContext = func(net.Listener) context.Context { return ctx } // websockets end with it
	group.Go(func() error {
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve management: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := s.http.Shutdown(last); err != nil {
			return s.http.Close()
		}
		return nil
	})
	return group.Wait()
}
