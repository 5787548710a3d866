package servicebus

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/coder/websocket"
)

// singleUse lets a client make one AMQP connection in its life, and tells when
// that ends.
//
// The client would connect again by itself. But a receiver that notices late
// that the connection is gone then closes whatever connection the client has by
// that time, and with it the sessions of others, which notice in their turn
// (azservicebus v1.11.0, AMQPLinksImpl.CloseIfNeeded).
type singleUse struct {
	cfg *Config
	// ended is called when the connection has ended, before anybody who uses it
	// learns that, and maybe more than once.
	ended func()
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
func (s *singleUse) connect(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
	if s.used {
		return nil, errUsedUp{}
	}
	dial := s.socket
	if s.cfg.WebSockets {
		dial = s.webSocket
	}
	conn, err := dial(ctx, args.Host)
	if err != nil {
		return nil, err
	}
	s.used = true
	return watched{conn, s.ended}, nil
}

// webSocket opens a websocket that speaks AMQP, through the proxy that the
// environment names, if any.
// See AMQP 1.0 WebSocket Binding, section 2.1, for the subprotocol.
func (s *singleUse) webSocket(ctx context.Context, where string) (net.Conn, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: s.cfg.TLS.Clone()}
	socket, _, err := websocket.Dial(ctx, where, &websocket.DialOptions{
		Subprotocols: []string{"amqp"},
		HTTPClient:   &http.Client{Transport: transport},
	})
	if err != nil {
		return nil, err
	}
	// The connection outlives the attempt to make it.
	return websocket.NetConn(context.WithoutCancel(ctx), socket, websocket.MessageBinary), nil
}

// socket opens a socket to the host that the client would reach by websocket.
func (s *singleUse) socket(ctx context.Context, where string) (net.Conn, error) {
	at, err := url.Parse(where)
	if err != nil {
		return nil, err
	}
	address := func(port string) string { return net.JoinHostPort(at.Hostname(), cmp.Or(at.Port(), port)) }
	if emulator(s.cfg.ConnectionString) {
		return new(net.Dialer).DialContext(ctx, "tcp", address("5672"))
	}
	dialer := tls.Dialer{Config: s.cfg.TLS}
	return dialer.DialContext(ctx, "tcp", address("5671"))
}

// watched tells when it is closed.
type watched struct {
	net.Conn
	closed func()
}

func (w watched) Close() error {
	w.closed()
	return w.Conn.Close()
}

// emulator tells whether a connection string is for the emulator, which has no TLS.
func emulator(connectionString string) bool {
	for part := range strings.SplitSeq(connectionString, ";") {
		if key, value, _ := strings.Cut(part, "="); strings.EqualFold(key, "UseDevelopmentEmulator") {
			is, _ := strconv.ParseBool(value) // the client refuses what is neither
			return is
		}
	}
	return false
}
