package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"changerelay/services/sandbox/internal/selfsigned"
)

// Config of a Gateway.
type Config struct {
	// Addresses are TCP addresses to listen on; port 0 picks one.
	Addresses []string
	// Network is what the connections go through; nil is nothing.
	Network func(net.Listener) net.Listener
	Log     zerolog.Logger
}

// Gateway hands connections to the servers behind it.
type Gateway struct {
	log         zerolog.Logger
	listeners   []net.Listener
	certificate *selfsigned.Certificate
	amqp, http  *door
}

// firstBytesTimeout bounds the time from a connection to what its client speaks.
const firstBytesTimeout = 10 * time.Second

// New binds the addresses and makes a certificate for TLS. Run must be called
// to serve them.
func New(cfg Config) (*Gateway, error) {
	g := &Gateway{log: cfg.Log}
	var ports []int
	for _, address := range cfg.Addresses {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listen for Service Bus clients: %w", err), g.Close())
		}
		if cfg.Network != nil {
			listener = cfg.Network(listener)
		}
		g.listeners = append(g.listeners, listener)
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	var err error
	if g.certificate, err = selfsigned.New(ports); err != nil {
		return nil, errors.Join(fmt.Errorf("make the certificate: %w", err), g.Close())
	}
	g.amqp, g.http = newDoor(g.listeners[0].Addr()), newDoor(g.listeners[0].Addr())
	return g, nil
}

// Addr is the i-th address in use.
func (g *Gateway) Addr(i int) net.Addr { return g.listeners[i].Addr() }

// AMQP has the connections that speak AMQP.
func (g *Gateway) AMQP() net.Listener { return g.amqp }

// HTTP has the connections that speak HTTP.
func (g *Gateway) HTTP() net.Listener { return g.http }

// CertificatePEM is what clients that use TLS have to trust.
func (g *Gateway) CertificatePEM() []byte { return g.certificate.PEM() }

// TLS serves with the gateway's certificate.
func (g *Gateway) TLS() *tls.Config { return g.certificate.TLS() }

// Close gives the addresses free when Run is never called.
func (g *Gateway) Close() error {
	var errs []error
	for _, listener := range g.listeners {
		errs = append(errs, listener.Close())
	}
	return errors.Join(errs...)
}

// Run takes connections until ctx ends, and returns nil then.
func (g *Gateway) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, listener := range g.listeners {
		group.Go(func() error { return g.accept(ctx, group, listener) })
	}
	group.Go(func() error {
		<-ctx.Done()
		return g.Close()
	})
	if err := group.Wait(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serve Service Bus clients: %w", err)
	}
	return nil
}

func (g *Gateway) accept(ctx context.Context, group *errgroup.Group, listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		switch {
		case err == nil:
			group.Go(func() error {
				g.admit(ctx, conn)
				return nil
			})
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return nil
		default:
			g.log.Warn().Err(err).Msg("accepting a connection failed, trying again")
			if !wait(ctx, 10*time.Millisecond) {
				return nil
			}
		}
	}
}

// wait sleeps for d and says whether ctx still goes on.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// admit finds out what a connection speaks and passes it on.
func (g *Gateway) admit(ctx context.Context, conn net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	known, to, err := g.recognise(ctx, conn)
	if !stop() || err != nil {
		if err != nil {
			g.log.Debug().Err(err).Str("peer", conn.RemoteAddr().String()).Msg("connection refused, it speaks nothing known")
		}
		_ = conn.Close()
		return
	}
	to.hand(known)
}

// First bytes of what clients speak: a TLS handshake record (RFC 8446, section
// 5.1), and the protocol header of AMQP. Everything else is taken for HTTP.
const (
	firstOfTLS  = 0x16
	firstOfAMQP = 'A'
)

func (g *Gateway) recognise(ctx context.Context, raw net.Conn) (net.Conn, *door, error) {
	if err := raw.SetDeadline(time.Now().Add(firstBytesTimeout)); err != nil {
		return nil, nil, err
	}
	conn, err := peek(raw, raw)
	if err != nil {
		return nil, nil, err
	}
	if conn.first() == firstOfTLS {
		secured := tls.Server(conn, g.certificate.TLS())
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, nil, err
		}
		if conn, err = peek(secured, raw); err != nil {
			return nil, nil, err
		}
	}
	to := g.http
	if conn.first() == firstOfAMQP {
		to = g.amqp
	}
	return conn, to, raw.SetDeadline(time.Time{})
}
