package amqpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
)

// Server accepts AMQP connections for a broker.
type Server struct {
	cfg      Config
	log      zerolog.Logger
	listener net.Listener
	// delay holds up every frame that arrives, in nanoseconds.
	delay atomic.Int64
	pace  atomic.Pointer[Pace]
	// queued and partial are the bytes of transfers of all connections that wait for the broker, and of which frames are
	// missing.
	queued, partial atomic.Int64

	mu    sync.Mutex
	conns map[*conn]struct{}
}

// New makes a server. Run must be called to serve its listener.
func New(cfg Config) *Server {
	cfg = cfg.withDefaults()
	s := &Server{cfg: cfg, log: cfg.Logger, listener: cfg.Listener, conns: map[*conn]struct{}{}}
	s.SetPace(Pace{})
	return s
}

// Run serves until ctx ends. It closes the listener and every connection before it returns, and returns nil when it
// was ctx that ended it.
func (s *Server) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		<-ctx.Done()
		return s.listener.Close()
	})
	g.Go(func() error { return s.sweep(ctx) })
	g.Go(func() error { return s.accept(ctx, g) })
	if err := g.Wait(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serve AMQP: %w", err)
	}
	return nil
}

func (s *Server) accept(ctx context.Context, g *errgroup.Group) error {
	for {
		nc, err := s.listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = nc.Close()
			}
			return nil
		case err != nil && !temporary(err):
			return err
		case err != nil:
			s.log.Warn().Err(err).Msg("accepting a connection failed, trying again")
			if err := wait(ctx, 10*time.Millisecond); err != nil {
				return nil
			}
			continue
		}
		c := newConn(ctx, s, nc)
		if !s.add(c) {
			s.log.Warn().Str("peer", nc.RemoteAddr().String()).Msg("connection refused, too many are open")
			_ = nc.Close()
			continue
		}
		g.Go(func() error {
			defer s.remove(c)
			c.run(ctx)
			return nil
		})
	}
}

// temporary tells errors of one connection, or of a passing shortage, from the end of the listener.
func temporary(err error) bool { return !errors.Is(err, net.ErrClosed) }

// wait sleeps for d or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (s *Server) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if most := s.pace.Load().MaxConnections; most > 0 && len(s.conns) >= most {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

func (s *Server) connections() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		out = append(out, c)
	}
	return out
}

// sweepInterval is how late an idle timeout or an expired session lock may be noticed.
const sweepInterval = time.Second

// sweep keeps the time for all connections: heartbeats, idle timeouts and session locks that ran out.
func (s *Server) sweep(ctx context.Context) error {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			for _, c := range s.connections() {
				c.sweep(now)
			}
		}
	}
}
