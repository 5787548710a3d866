package management

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"changerelay/services/sandbox/internal/broker"
)

// Config of a Server.
type Config struct {
	Addr string // to listen on; port 0 is allowed
	Log  zerolog.Logger
}

// Server is the API on a listener of its own.
type Server struct {
	listener    net.Listener
	http        *http.Server
	certificate *certificate
}

// Times that a client may take.
const (
	firstByteTimeout = 10 * time.Second
	headerTimeout    = 10 * time.Second
	shutdownTimeout  = 2 * time.Second
)

// New binds the listener. Run serves.
func New(b *broker.Broker, cfg Config) (*Server, error) {
	cert, err := newCertificate()
	if err != nil {
		return nil, fmt.Errorf("make the management certificate: %w", err)
	}
	listener, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen for management: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", NewHandler(b, cfg.Log))
	mux.HandleFunc("GET /$certificate", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-pem-file")
		_, _ = w.Write(cert.pem)
	})
	return &Server{
		listener:    listener,
		certificate: cert,
		http: &http.Server{
			Handler:           mux,
			ReadHeaderTimeout: headerTimeout,
		},
	}, nil
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// CertificatePEM is what a client of the HTTPS side has to trust.
func (s *Server) CertificatePEM() []byte { return s.certificate.pem }

// Close gives the address free when Run is never called.
func (s *Server) Close() error { return s.listener.Close() }

// Run serves until ctx ends. It is called once.
func (s *Server) Run(ctx context.Context) error {
	sniffer := &sniffer{Listener: s.listener, tls: s.certificate.config()}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := s.http.Serve(sniffer); !errors.Is(err, http.ErrServerClosed) {
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

// sniffer makes connections that are TLS if their first byte says so.
type sniffer struct {
	net.Listener
	tls *tls.Config
}

func (s *sniffer) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &sniffed{Conn: conn, config: s.tls}, nil
}

// sniffed decides at its first read, which is on the connection's own
// goroutine: a client that says nothing holds up nobody else.
type sniffed struct {
	net.Conn
	config  *tls.Config
	decided bool
}

// recordTypeHandshake begins a TLS connection (RFC 8446, section 5.1).
const recordTypeHandshake = 0x16

func (c *sniffed) Read(p []byte) (int, error) {
	if !c.decided {
		if err := c.decide(); err != nil {
			return 0, err
		}
	}
	return c.Conn.Read(p)
}

func (c *sniffed) decide() error {
	if err := c.SetReadDeadline(time.Now().Add(firstByteTimeout)); err != nil {
		return err
	}
	buffered := &bufferedConn{Conn: c.Conn, reader: bufio.NewReader(c.Conn)}
	first, err := buffered.reader.Peek(1)
	if err != nil {
		return err
	}
	c.decided = true
	c.Conn = buffered
	if first[0] == recordTypeHandshake {
		c.Conn = tls.Server(buffered, c.config)
	}
	return nil
}

type bufferedConn struct {
	net.Conn
	reader *bufio.Reader
}

func (c *bufferedConn) Read(p []byte) (int, error) { return c.reader.Read(p) }
