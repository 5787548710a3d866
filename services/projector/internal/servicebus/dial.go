package servicebus

import (
	"context"
	"net"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/services/projector/internal/namespace"
)

// singleUse lets a client make one AMQP connection in its life, and tells when
// that ends.
//
// The client would connect again by itself. But a receiver that notices late
// that the connection is gone then closes whatever connection the client has by
// that time, and with it the sessions of others, which notice in their turn
// (azservicebus v1.11.0, AMQPLinksImpl.CloseIfNeeded).
type singleUse struct {
	access *namespace.Access
	// heard is called when anything has come but a sign of life.
	heard func()
	// ended is called when the connection has ended, before anybody who uses it
	// learns that, and maybe more than once.
	ended func()
	// refused is called for sessions of which a message is refused (decodable.Conn); nil
	// where nobody needs to know.
	refused func(sessionID string)
	// used is guarded by the client, which makes one connection at a time.
	used bool
}

// errUsedUp is what a client gets that connects again. It is not retriable for
// the client, which would otherwise try for as long as it has time.
type errUsedUp struct{}

func (errUsedUp) Error() string { return "the connection of this client has ended" }

func (errUsedUp) NonRetriable() {}

// connect is the client's way to get a connection. The option is meant for
// websockets; the client asks no more of it than a stream to the service.
func (s *singleUse) connect(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
	if s.used {
		return nil, errUsedUp{}
	}
	conn, err := s.access.Dial(ctx, s.refused)
	if err != nil {
		return nil, err
	}
	s.used = true
	return watched{conn, s.heard, s.ended}, nil
}

// watched tells when something comes, and when it is closed.
type watched struct {
	net.Conn
	heard, closed func()
}

// emptyFrame is how long a frame is that says only that the peer lives (AMQP 1.0, section 2.4.5).
const emptyFrame = 8

func (w watched) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if n > emptyFrame {
		w.heard()
	}
	return n, err
}

func (w watched) Close() error {
	w.closed()
	return w.Conn.Close()
}
