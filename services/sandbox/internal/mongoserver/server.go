package mongoserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/sync/errgroup"

	"changerelay/services/sandbox/internal/access"
	"changerelay/services/sandbox/internal/engine"
)

// SetName is the name of the replica set.
const SetName = "rs0"

// Version is the server version that clients are told.
const Version = "4.4.1"

// Config says where a server listens and what it serves.
type Config struct {
	// Address is host:port; port 0 takes a free one.
	Address string
	Engine  *engine.Engine
	// Accounts asks clients for authentication as one of these users, or of
	// those that commands have made; nil lets everybody do everything.
	Accounts *access.Accounts
	// TLS serves clients that begin with a handshake, too; nil serves plain ones
	// only.
	TLS *tls.Config
	Log zerolog.Logger
}

// Server is a listener on an engine.
type Server struct {
	engine     *engine.Engine
	log        zerolog.Logger
	listener   net.Listener
	cursors    *cursors
	failPoints *failPoints
	faults     demanded
	open       open
	election   *election
	// commandsByName are all that can be run.
	commandsByName map[string]*command
	accounts       *accounts
	// authorization tells that clients may do only what they are granted.
	authorization bool
	tls           *tls.Config
	// process names this run of the server, for clients that monitor it.
	process bson.ObjectID
	started time.Time

	lastConnection atomic.Int64
	connections    atomic.Int64
	lastRequest    atomic.Int32
	commands       atomic.Int64
}

// New binds the address, so that Addr is known, and serves nothing yet.
func New(config Config) (*Server, error) {
	listener, err := net.Listen("tcp", config.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for MongoDB clients: %w", err)
	}
	accounts := newAccounts(config.Engine)
	if config.Accounts != nil {
		if err := accounts.declare(context.Background(), *config.Accounts); err != nil {
			return nil, errors.Join(fmt.Errorf("create the MongoDB users: %w", err), listener.Close())
		}
	}
	return &Server{
		engine: config.Engine, log: config.Log, listener: listener,
		cursors: newCursors(), failPoints: &failPoints{}, election: newElection(config.Engine), commandsByName: newCommands(),
		accounts: accounts, authorization: config.Accounts != nil, tls: config.TLS,
		process: bson.NewObjectID(), started: time.Now(),
	}, nil
}

// Addr is the address listened on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// URI is what clients connect with.
func (s *Server) URI() string {
	return fmt.Sprintf("mongodb://%s/?replicaSet=%s", s.Addr(), SetName)
}

// Run serves until ctx ends, closes all connections and returns nil; or returns
// why it could not go on. It may be called once.
func (s *Server) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		<-ctx.Done()
		return s.listener.Close()
	})
	group.Go(func() error { return s.reapCursors(ctx) })
	group.Go(func() error { return s.election.run(ctx) })
	group.Go(func() error {
		for {
			nc, err := s.listener.Accept()
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("accept MongoDB clients: %w", err)
			}
			if err != nil {
				s.log.Warn().Err(err).Msg("accept failed, trying again")
				if !pause(ctx, acceptPause) {
					return nil
				}
				continue
			}
			group.Go(func() error {
				s.serve(ctx, nc)
				return nil
			})
		}
	})
	err := group.Wait()
	s.cursors.closeAll()
	return err
}

// acceptPause keeps a lasting failure, such as too many open files, from
// turning into a busy loop.
const acceptPause = 50 * time.Millisecond

// pause waits and reports whether ctx is still good.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
