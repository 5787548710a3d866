package servicebus_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/servicebus"
	"changerelay/services/publisher/internal/testserver"
)

func TestDial_MessagesGoByWebSocketsWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	servers := testserver.Start(t)
	secure := strings.Replace(servers.ServiceBus, "UseDevelopmentEmulator=true;", "", 1)
	for name, o := range map[string]servicebus.Options{
		"websockets": {WebSockets: true, TLS: trust(t, servers.Management)},
		"TLS":        {TLS: trust(t, servers.Management)},
	} {
		topic := servicebus.New(testserver.Topic, servicebus.WithConnectionString(secure, o))
		want := message(t, "order-1", 1, name)
		if n, err := topic.Send(t.Context(), []contract.Message{want}); n != 1 || err != nil {
			t.Errorf("Send by %s = %d, %v, want 1", name, n, err)
		}
		topic.Close()
	}
	// The sandbox speaks plain AMQP on this port, too: without its certificate it
	// is not trusted, so what went out went by TLS.
	topic := servicebus.New(testserver.Topic, servicebus.WithConnectionString(secure, servicebus.Options{WebSockets: true}))
	defer topic.Close()
	if _, err := topic.Send(t.Context(), []contract.Message{message(t, "order-1", 2, "x")}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("Send without trust = %v, want the certificate refused", err)
	}
}

// trust trusts the sandbox's certificate.
func trust(t *testing.T, management string) *tls.Config {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, management+"/$certificate", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	certificate, err := io.ReadAll(response.Body)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(certificate) {
		t.Fatalf("no certificate (%v) in %q", err, certificate)
	}
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}
