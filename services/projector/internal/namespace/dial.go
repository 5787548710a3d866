package namespace

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"

	"github.com/coder/websocket"

	"changerelay/services/projector/internal/decodable"
)

// Dial opens a stream to the namespace that speaks AMQP, to be read by go-amqp. For refused,
// which may be nil, see decodable.Conn.
func (a *Access) Dial(ctx context.Context, refused func(sessionID string)) (net.Conn, error) {
	dial := a.socket
	if a.WebSockets {
		dial = a.webSocket
	}
	conn, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	return decodable.Conn(conn, refused), nil
}

// webSocket opens a websocket, through the proxy that the environment names, if any.
// See AMQP 1.0 WebSocket Binding, section 2.1, for the subprotocol.
func (a *Access) webSocket(ctx context.Context) (net.Conn, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: a.TLS.Clone()}
	socket, _, err := websocket.Dial(ctx, "wss://"+a.Host+"/$servicebus/websocket", &websocket.DialOptions{
		Subprotocols: []string{"amqp"},
		HTTPClient:   &http.Client{Transport: transport},
	})
	if err != nil {
		transport.CloseIdleConnections() // nobody else would: an answer that refuses leaves one
		return nil, err
	}
	// The connection outlives the attempt to make it.
	return websocket.NetConn(context.WithoutCancel(ctx), socket, websocket.MessageBinary), nil
}

func (a *Access) socket(ctx context.Context) (net.Conn, error) {
	at := url.URL{Host: a.Host}
	address := func(port string) string { return net.JoinHostPort(at.Hostname(), cmp.Or(at.Port(), port)) }
	if a.Emulator {
		return new(net.Dialer).DialContext(ctx, "tcp", address("5672"))
	}
	dialer := tls.Dialer{Config: a.TLS}
	return dialer.DialContext(ctx, "tcp", address("5671"))
}
