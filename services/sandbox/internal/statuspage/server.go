package statuspage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// Config is what a page shows and changes.
type Config struct {
	// Address is host:port; port 0 takes a free one.
	Address string
	// Status is asked for what /status answers, by several goroutines at once.
	Status    func() any
	Database  Database
	Namespace Namespace
	// Operator tells why who may change neither faults nor the world.
	Operator func(who Login) error
	// Faults serves what is at /faults, World what is at /world.
	Faults, World http.Handler
}

// Server serves the page.
type Server struct {
	Config
	listener net.Listener
}

// New binds the address.
func New(config Config) (*Server, error) {
	listener, err := net.Listen("tcp", config.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for the status page: %w", err)
	}
	return &Server{Config: config, listener: listener}, nil
}

// URL is where the page is.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Timeouts of answers that are small and served to the machine's own people.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = time.Minute
	closeTimeout  = time.Second
	// answerTimeout bounds the work for one request.
	answerTimeout = 15 * time.Second
)

// Run serves until ctx ends and returns nil, or returns why it could not.
func (s *Server) Run(ctx context.Context) error {
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
	}
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
