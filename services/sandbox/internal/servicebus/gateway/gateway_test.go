package gateway_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	goamqp "github.com/Azure/go-amqp"
	"github.com/coder/websocket"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"changerelay/services/sandbox/internal/servicebus/amqpserver"
	"changerelay/services/sandbox/internal/servicebus/broker"
	"changerelay/services/sandbox/internal/servicebus/entity"
	"changerelay/services/sandbox/internal/servicebus/gateway"
	"changerelay/services/sandbox/internal/servicebus/management"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// namespace is a gateway with both servers behind it, and a queue "orders".
type namespace struct {
	*gateway.Gateway
	address string
	amqp    *amqpserver.Server
}

func start(t *testing.T) *namespace {
	t.Helper()
	b, err := broker.New(broker.Config{})
	must(t, err)
	_, err = b.CreateQueue("orders", entity.QueueProperties{})
	must(t, err)
	g, err := gateway.New(gateway.Config{Addresses: []string{"127.0.0.1:0", "127.0.0.1:0"}, Log: zerolog.Nop()})
	must(t, err)
	n := &namespace{Gateway: g, address: g.Addr(0).String()}
	n.amqp = amqpserver.New(amqpserver.Config{Listener: g.AMQP(), Broker: b, Logger: zerolog.Nop()})
	api := management.New(b, management.Config{
		Listener: g.HTTP(), CertificatePEM: g.CertificatePEM(), WebSocket: g.WebSocket(), Log: zerolog.Nop(),
	})
	ctx, cancel := context.WithCancel(context.Background())
	runs := []func(context.Context) error{b.Run, g.Run, n.amqp.Run, api.Run}
	done := make(chan error, len(runs))
	for _, run := range runs {
		go func() { done <- run(ctx) }()
	}
	t.Cleanup(func() {
		cancel()
		for range runs {
			if err := <-done; err != nil {
				t.Errorf("run: %v", err)
			}
		}
	})
	return n
}

// trust is a TLS configuration for clients that trust the gateway's certificate.
func (n *namespace) trust(t *testing.T) *tls.Config {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(n.CertificatePEM()) {
		t.Fatal("got no certificate")
	}
	return &tls.Config{RootCAs: roots}
}

// client is an official client, over TLS and, if asked for, websockets.
func (n *namespace) client(t *testing.T, overWebSockets bool) *azservicebus.Client {
	t.Helper()
	options := &azservicebus.ClientOptions{
		TLSConfig:    n.trust(t),
		RetryOptions: azservicebus.RetryOptions{MaxRetries: 1, RetryDelay: time.Millisecond, MaxRetryDelay: time.Millisecond},
	}
	if overWebSockets {
		transport := &http.Transport{TLSClientConfig: n.trust(t)}
		t.Cleanup(transport.CloseIdleConnections)
		options.NewWebSocketConn = func(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			socket, _, err := websocket.Dial(ctx, args.Host, &websocket.DialOptions{
				Subprotocols: []string{"amqp"}, HTTPClient: &http.Client{Transport: transport},
			})
			if err != nil {
				return nil, err
			}
			return websocket.NetConn(context.WithoutCancel(ctx), socket, websocket.MessageBinary), nil
		}
	}
	client, err := azservicebus.NewClientFromConnectionString(
		"Endpoint=sb://"+n.address+";SharedAccessKeyName=root;SharedAccessKey=secret;", options)
	must(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) }) // a websocket says goodbye with an error
	return client
}

func carriesMessages(t *testing.T, client *azservicebus.Client) {
	t.Helper()
	sender, err := client.NewSender("orders", nil)
	must(t, err)
	body := make([]byte, 100_000) // more than a frame
	must(t, sender.SendMessage(t.Context(), &azservicebus.Message{Body: body}, nil))
	receiver, err := client.NewReceiverForQueue("orders", nil)
	must(t, err)
	messages, err := receiver.ReceiveMessages(t.Context(), 1, nil)
	must(t, err)
	if got := len(messages[0].Body); got != len(body) {
		t.Errorf("got a body of %d bytes, want %d", got, len(body))
	}
	must(t, receiver.CompleteMessage(t.Context(), messages[0], nil))
}

func TestGateway_AMQPIsSpokenOverTLS(t *testing.T) {
	t.Parallel()
	carriesMessages(t, start(t).client(t, false))
}

func TestGateway_AMQPIsSpokenOverWebSockets(t *testing.T) {
	t.Parallel()
	carriesMessages(t, start(t).client(t, true))
}

func TestGateway_AMQPIsSpokenInTheClear(t *testing.T) {
	t.Parallel()
	n := start(t)
	for i := range 2 {
		conn, err := goamqp.Dial(t.Context(), "amqp://"+n.Addr(i).String(), nil)
		must(t, err)
		must(t, conn.Close())
	}
}

func TestGateway_AClientOverWebSocketsOutlivesACut(t *testing.T) {
	t.Parallel()
	n := start(t)
	client := n.client(t, true)
	sender, err := client.NewSender("orders", nil)
	must(t, err)
	must(t, sender.SendMessage(t.Context(), &azservicebus.Message{}, nil))
	if cut := n.amqp.Cut(); cut != 1 {
		t.Fatalf("got %d connections cut, want the client's", cut)
	}
	must(t, sender.SendMessage(t.Context(), &azservicebus.Message{}, nil))
}

func TestGateway_HTTPIsServedOnEveryPortWithAndWithoutTLS(t *testing.T) {
	t.Parallel()
	n := start(t)
	transport := &http.Transport{TLSClientConfig: n.trust(t)}
	defer transport.CloseIdleConnections()
	for _, url := range []string{
		"http://" + n.Addr(0).String(), "https://" + n.Addr(0).String(), "http://" + n.Addr(1).String(), "https://" + n.Addr(1).String(),
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/$certificate", http.NoBody)
		must(t, err)
		response, err := (&http.Client{Transport: transport}).Do(request)
		must(t, err)
		body, err := io.ReadAll(response.Body)
		must(t, errors.Join(err, response.Body.Close()))
		if string(body) != string(n.CertificatePEM()) {
			t.Errorf("%s: got %q, want the certificate", url, body)
		}
	}
}

func TestGateway_SilentClientsHoldUpNobody(t *testing.T) {
	t.Parallel()
	n := start(t)
	for range 100 { // one after the other they would last longer than any test
		silent, err := net.Dial("tcp", n.address)
		must(t, err)
		defer silent.Close()
	}
	conn, err := goamqp.Dial(t.Context(), "amqp://"+n.address, nil)
	must(t, err)
	must(t, conn.Close())
}

func TestGateway_ARequestThatIsNoWebSocketIsRefused(t *testing.T) {
	t.Parallel()
	n := start(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+n.address+"/$servicebus/websocket/", http.NoBody)
	must(t, err)
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	must(t, err)
	must(t, response.Body.Close())
	if response.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("got status %d, want 426", response.StatusCode)
	}
}

func TestGateway_AnAddressInUseLeavesNothingBound(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	address := freeAddress(t)
	if _, err := gateway.New(gateway.Config{Addresses: []string{address, taken.Addr().String()}}); err == nil {
		t.Fatal("got no error, want one for the address in use")
	}
	again, err := net.Listen("tcp", address)
	must(t, err)
	must(t, again.Close())
}

// freeAddress returns an address that nobody listens on, below the ports that systems
// give to outgoing connections and to listeners of port 0, so that no other test is
// given it meanwhile.
func freeAddress(t *testing.T) string {
	t.Helper()
	var listener net.Listener
	err := errors.New("not tried")
	for tries := 0; err != nil && tries < 100; tries++ {
		listener, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000)))
	}
	must(t, err)
	must(t, listener.Close())
	return listener.Addr().String()
}
