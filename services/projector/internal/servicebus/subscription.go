package servicebus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/rs/zerolog"

	"changerelay/services/projector/internal/decodable"
	"changerelay/services/projector/internal/namespace"
	"changerelay/services/projector/internal/session"
)

// Config says where the subscription is and how it is read.
type Config struct {
	// ConnectionString gives access by a shared key. It wins over Namespace.
	ConnectionString string
	// Namespace is the host name of the namespace, entered with Credential.
	Namespace  string
	Credential azcore.TokenCredential
	// WebSockets goes through port 443, as some networks ask, instead of 5671.
	WebSockets bool
	// TLS is nil for the system's roots.
	TLS *tls.Config

	Topic, Subscription string

	// Connections is how many connections the sessions are spread over.
	Connections int
	// Linger is how long a receive waits for more messages after the first.
	Linger time.Duration
	// CloseTime bounds closing one connection.
	CloseTime time.Duration
}

// Access is how the namespace is entered.
func (c *Config) Access() (namespace.Access, error) {
	access := namespace.Access{Host: c.Namespace, Credential: c.Credential}
	if c.ConnectionString != "" {
		var err error
		if access, err = namespace.Read(c.ConnectionString); err != nil {
			return access, err
		}
	}
	access.WebSockets, access.TLS = c.WebSockets, c.TLS
	return access, nil
}

// Subscription hands out the sessions of one subscription. It connects at the
// first accept, and again whenever it has to.
type Subscription struct {
	cfg   Config
	log   zerolog.Logger
	conns []*connection
	// reached: the service has answered.
	reached atomic.Bool
	// leftovers are closes that outlived their deadline.
	leftovers sync.WaitGroup
	// rate is shared by all sessions, which share what the network carries.
	rate rate
	// refused are sessions of which a message cannot be decoded.
	refused decodable.Refused
}

var _ session.Acceptor = (*Subscription)(nil)

// New returns the subscription. It makes no connection, but fails on a
// connection string that cannot be read.
func New(cfg Config, log zerolog.Logger) (*Subscription, error) {
	s := &Subscription{cfg: cfg, log: log}
	for range max(cfg.Connections, 1) {
		s.conns = append(s.conns, &connection{dial: s.dial, discard: s.discard, log: log})
	}
	if _, err := s.conns[0].current(); err != nil {
		return nil, err
	}
	return s, nil
}

// dial makes a client; the client connects when it is first used, once. heard is
// called when something comes over that connection, and ended when it ends.
func (s *Subscription) dial(heard, ended func()) (*azservicebus.Client, error) {
	access, err := s.cfg.Access()
	if err != nil {
		return nil, err
	}
	way := &singleUse{access: &access, heard: heard, ended: ended, refused: s.refused.Note}
	options := &azservicebus.ClientOptions{
		ApplicationID:    "change-relay-projector",
		NewWebSocketConn: way.connect,
		// The engine decides what is tried again. Retries inside the client
		// would take a lost session again.
		RetryOptions: azservicebus.RetryOptions{MaxRetries: -1},
	}
	if s.cfg.ConnectionString != "" {
		client, err := azservicebus.NewClientFromConnectionString(s.cfg.ConnectionString, options)
		if err != nil {
			// The client's text may quote the connection string.
			return nil, errors.New("the Service Bus connection string is not valid")
		}
		return client, nil
	}
	client, err := azservicebus.NewClient(s.cfg.Namespace, s.cfg.Credential, options)
	if err != nil {
		return nil, fmt.Errorf("open Service Bus namespace %q: %w", s.cfg.Namespace, err)
	}
	return client, nil
}

// Accept implements session.Acceptor. The client passes ctx's deadline to the
// service, which answers in time that there is no session.
func (s *Subscription) Accept(ctx context.Context, slot int) (session.Receiver, error) {
	conn := s.conns[slot%len(s.conns)]
	client, err := conn.current()
	if err != nil {
		return nil, err
	}
	conn.waits()
	began := time.Now()
	inner, err := client.AcceptNextSessionForSubscription(ctx, s.cfg.Topic, s.cfg.Subscription, nil)
	if err == nil {
		s.reached.Store(true)
		conn.trust()
		s.refused.Forget(inner.SessionID())
		return &receiver{
			inner:     inner,
			sessionID: inner.SessionID(),
			granted:   inner.LockedUntil(),
			linger:    s.cfg.Linger,
			rate:      &s.rate,
			leftovers: &s.leftovers,
			refused:   &s.refused,
		}, nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		conn.unanswered(client, time.Since(began))
	}
	switch classify(err) {
	case namespace.NoSession:
		s.reached.Store(true)
		conn.trust()
		return nil, session.ErrNoSession
	case namespace.Refused:
		if !conn.uses(client) {
			return nil, fmt.Errorf("the connection was replaced meanwhile: %w", err)
		}
		return nil, fmt.Errorf("subscription %q of topic %q refuses: %w", s.cfg.Subscription, s.cfg.Topic, err)
	case namespace.Busy:
		return nil, orBusy(err)
	case namespace.Broken:
		if ctx.Err() == nil {
			conn.doubt(client, 1)
		}
	}
	return nil, err
}

// Reached tells whether the service has answered yet, an accept or the listing of sessions.
func (s *Subscription) Reached() bool { return s.reached.Load() }

// Doubt implements session.Acceptor. The client does not tell when the service last
// answered, so that doubts are counted instead.
func (s *Subscription) Doubt(slot int, _ time.Time) {
	conn := s.conns[slot%len(s.conns)]
	if client, err := conn.current(); err == nil {
		conn.doubt(client, hungAccept)
	}
}

// Close closes every connection, and with them what is still held or hangs.
func (s *Subscription) Close(ctx context.Context) error {
	for _, conn := range s.conns {
		conn.close()
	}
	ended := make(chan struct{})
	go func() {
		s.leftovers.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close the Service Bus connections: %w", context.Cause(ctx))
	}
}

// discard closes a client that is not used any more, in the background.
func (s *Subscription) discard(client *azservicebus.Client) {
	s.leftovers.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.CloseTime)
		defer cancel()
		if err := client.Close(ctx); err != nil {
			s.log.Debug().Err(err).Msg("a connection was not closed cleanly")
		}
	})
}
