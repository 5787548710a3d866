package command

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

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/accounts"
	"changerelay/services/sandbox/internal/mongodb/election"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/javascript"
	"changerelay/services/sandbox/internal/mongodb/mongowire"
	"changerelay/services/sandbox/internal/mongodb/serverversion"
)

// SetName is the name of the replica set.
const SetName = "rs0"

// Config says where a server listens and what it serves.
type Config struct {
	// Address is host:port; port 0 takes a free one.
	Address string
	Engine  *engine.Engine
	Version serverversion.Version
	// Commands are all that can be run, by the names that clients may use.
	Commands map[string]*Command
	// Accounts asks clients for authentication as one of these users, or of
	// those that commands have made; nil lets everybody do everything.
	Accounts *access.Accounts
	// TLS serves clients that begin with a handshake, too; nil serves plain ones
	// only.
	TLS *tls.Config
	// Network is what the connections go through; nil is nothing.
	Network func(net.Listener) net.Listener
	Log     zerolog.Logger
}

// Server is a listener on an engine.
type Server struct {
	Engine     *engine.Engine
	log        zerolog.Logger
	listener   net.Listener
	Cursors    *cursors
	Operations *operations
	inbox      *mongowire.Inbox
	Counters   opCounters
	Version    serverversion.Version
	FailPoints *failPoints
	faults     demanded
	open       open
	Election   *election.Election
	// commandsByName are all that can be run.
	Profiler       *Profiler
	scripts        *javascript.Pool
	commandsByName map[string]*Command
	Accounts       *accounts.Store
	// authorization tells that clients may do only what they are granted.
	authorization bool
	tls           *tls.Config
	// Process names this run of the server, for clients that monitor it.
	Process bson.ObjectID
	Started time.Time

	maxConnections atomic.Int64
	LastConnection atomic.Int64
	Connections    atomic.Int64
	lastRequest    atomic.Int32
	Commands       atomic.Int64
	// BytesIn and BytesOut are those of all connections.
	BytesIn, BytesOut atomic.Int64
}

// New binds the address, so that Addr is known, and serves nothing yet.
func New(config Config) (*Server, error) {
	listener, err := net.Listen("tcp", config.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for MongoDB clients: %w", err)
	}
	if config.Network != nil {
		listener = config.Network(listener)
	}
	accounts := accounts.New(config.Engine)
	if config.Accounts != nil {
		if err := accounts.Declare(context.Background(), *config.Accounts); err != nil {
			return nil, errors.Join(fmt.Errorf("create the MongoDB users: %w", err), listener.Close())
		}
	}
	return &Server{
		Engine: config.Engine, log: config.Log, listener: listener,
		Cursors: newCursors(), Operations: newOperations(), Profiler: newProfiler(), scripts: javascript.NewPool(), Version: config.Version, inbox: mongowire.NewInbox(inboxBytes, inboxPatience), FailPoints: &failPoints{}, Election: election.New(config.Engine), commandsByName: config.Commands,
		Accounts: accounts, authorization: config.Accounts != nil, tls: config.TLS,
		Process: bson.NewObjectID(), Started: time.Now(),
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
	group.Go(func() error { return s.Election.Run(ctx) })
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
	s.Cursors.closeAll()
	return err
}

const (
	// inboxBytes bounds the large messages of all connections together.
	inboxBytes    = 256 << 20
	inboxPatience = 30 * time.Second
)

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

// SetMaxConnections bounds the connections, of clients that come from now on; 0 is no bound.
func (s *Server) SetMaxConnections(most int64) { s.maxConnections.Store(most) }

// full tells that there is no room for the connection that has been counted last.
func (s *Server) full() bool {
	most := s.maxConnections.Load()
	return most > 0 && s.Connections.Load() > most
}

// Table has all commands that can be run, by their names. It is not to be changed.
func (s *Server) Table() map[string]*Command { return s.commandsByName }
