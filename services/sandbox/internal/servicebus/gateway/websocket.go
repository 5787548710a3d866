package gateway

import (
	"net"
	"net/http"
	"sync"

	"github.com/coder/websocket"
)

// WebSocket makes a connection to the AMQP server out of a request for a
// websocket (AMQP WebSocket Binding 1.0). It returns when the connection ends.
func (g *Gateway) WebSocket() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		socket, err := websocket.Accept(w, r, &websocket.AcceptOptions{
			Subprotocols: []string{"amqp", "AMQPWSB10"},
		})
		if err != nil {
			g.log.Debug().Err(err).Str("peer", r.RemoteAddr).Msg("websocket refused")
			return
		}
		conn := &socketConn{
			Conn:   websocket.NetConn(r.Context(), socket, websocket.MessageBinary),
			socket: socket, ended: make(chan struct{}),
		}
		conn.end = sync.OnceFunc(func() { close(conn.ended) })
		g.amqp.hand(conn)
		<-conn.ended
	})
}

// socketConn is a connection over a websocket.
type socketConn struct {
	net.Conn
	socket *websocket.Conn
	ended  chan struct{}
	end    func()
}

// Close says goodbye to the peer and waits a moment for its answer.
func (c *socketConn) Close() error {
	defer c.end()
	return c.Conn.Close()
}

// Abort ends the connection without a word.
func (c *socketConn) Abort() error {
	defer c.end()
	return c.socket.CloseNow()
}
