package namespace

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// A way that refuses the websocket, such as a proxy without its target, leaves no connection
// behind: it is tried again and again.
func TestDial_ARefusedWebsocketLeavesNoConnection(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not now", http.StatusServiceUnavailable)
	}))
	closed := make(chan struct{}, 1)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	a := Access{Host: server.Listener.Addr().String(), WebSockets: true, TLS: &tls.Config{RootCAs: roots}}
	if _, err := a.webSocket(t.Context()); err == nil {
		t.Fatal("dial: got a connection, want that it is refused")
	}
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	select {
	case <-closed:
	case <-limit.C:
		t.Error("the connection of the attempt stays open")
	}
}
