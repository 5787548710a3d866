package mongoserver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/selfsigned"
)

// TestSecurity_OneAddressServesPlainAndTLSClients connects both to the same server.
func TestSecurity_OneAddressServesPlainAndTLSClients(t *testing.T) {
	t.Parallel()
	config, trusted := certified(t)
	h := serve(t, command.Config{Engine: engine.New(engine.Config{}), TLS: config})
	secured := h.connect(t, options.Client().SetTLSConfig(&tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}))
	stream, err := secured.Database("test").Collection("things").Watch(t.Context(), mongo.Pipeline{})
	must(t, err)
	defer stream.Close(context.Background())
	_, err = h.connect(t).Database("test").Collection("things").InsertOne(t.Context(), bson.D{{Key: "_id", Value: strings.Repeat("x", 1<<20)}})
	must(t, err)
	if !stream.Next(t.Context()) {
		t.Errorf("got %v, want the event of the plain client's write", stream.Err())
	}
}

func TestSecurity_AClientThatDoesNotTrustTheCertificateIsNotServed(t *testing.T) {
	t.Parallel()
	config, _ := certified(t)
	h := serve(t, command.Config{Engine: engine.New(engine.Config{}), TLS: config})
	_, err := (&tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12}}).DialContext(t.Context(), "tcp", h.server.Addr().String())
	if unknown, ok := errors.AsType[x509.UnknownAuthorityError](err); !ok {
		t.Errorf("got %v, want %v", err, unknown)
	}
}

// certified makes a certificate, and what a client has to trust.
func certified(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	certificate, err := selfsigned.New(nil)
	must(t, err)
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(certificate.PEM()) {
		t.Fatal("got no certificate")
	}
	return certificate.TLS(), trusted
}

// TestSecurity_AThousandIdleConnectionsAreNoBurden opens them, leaves half of them
// silent, and uses another.
func TestSecurity_AThousandIdleConnectionsAreNoBurden(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	ping, err := bson.Marshal(bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}})
	must(t, err)
	for i := range 1000 {
		if i%2 == 0 {
			client := newRawClient(t, h.server.Addr().String())
			_, err := client.roundTrip(message{body: ping}, time.Minute)
			must(t, err)
			continue
		}
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", h.server.Addr().String())
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
	}
	var status struct{ Connections struct{ Current int } }
	must(t, h.client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "serverStatus", Value: 1}}).Decode(&status))
	if status.Connections.Current < 500 { // the silent ones may still be waiting to be accepted
		t.Errorf("got %d connections, want at least those that were answered", status.Connections.Current)
	}
	insertEvents(t.Context(), t, h.db.Collection("events"), 1000)
}
