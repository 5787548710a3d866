package servicebus

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/coder/websocket"
)

// Dial returns a new client. It makes no round trip.
type Dial func() (*azservicebus.Client, error)

// WithConnectionString dials with a connection string.
func WithConnectionString(connection string, o Options) Dial {
	return func() (*azservicebus.Client, error) {
		client, err := azservicebus.NewClientFromConnectionString(connection, o.client())
		if err != nil {
			// The SDK's text may quote the connection string.
			return nil, errors.New("the connection string is not one")
		}
		return client, nil
	}
}

// WithCredential dials a fully qualified namespace with an Entra ID credential.
func WithCredential(namespace string, credential azcore.TokenCredential, o Options) Dial {
	return func() (*azservicebus.Client, error) {
		return azservicebus.NewClient(namespace, credential, o.client())
	}
}

// Options say how to connect.
type Options struct {
	// WebSockets goes through port 443, as some networks ask, instead of 5671.
	WebSockets bool
	// TLS is nil for the system's roots.
	TLS *tls.Config
}

func (o Options) client() *azservicebus.ClientOptions {
	options := &azservicebus.ClientOptions{
		ApplicationID: "change-relay",
		RetryOptions:  azservicebus.RetryOptions{MaxRetries: -1},
		TLSConfig:     o.TLS,
	}
	if o.WebSockets {
		options.NewWebSocketConn = o.webSocket
	}
	return options
}

// webSocket opens a websocket that speaks AMQP, through the proxy that the
// environment names, if any.
// See AMQP 1.0 WebSocket Binding, section 2.1, for the subprotocol.
func (o Options) webSocket(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: o.TLS.Clone()}
	socket, _, err := websocket.Dial(ctx, args.Host, &websocket.DialOptions{
		Subprotocols: []string{"amqp"},
		HTTPClient:   &http.Client{Transport: transport},
	})
	if err != nil {
		return nil, err
	}
	// The connection outlives the attempt to make it.
	return websocket.NetConn(context.WithoutCancel(ctx), socket, websocket.MessageBinary), nil
}
