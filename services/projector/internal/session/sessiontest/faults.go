package sessiontest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/session"
)

// While the service is throttling an accept fails: it neither hangs nor says
// that there is nothing to do, but for how long the service asks to be left
// alone. Afterwards accepts work again by themselves.
func (s suite) throttlingIsNoSilence(t *testing.T) {
	sessions := s.at(t)
	s.send(t, message("1", "a"))
	end := s.servers.Fault(t, map[string]any{"kind": "servicebus.throttle", "path": s.path(t)})
	for range 3 {
		_, err := accept(t, sessions, 0, 5*time.Second)
		if throttled, says := errors.AsType[*session.BusyError](err); !says || throttled.Pause <= 0 {
			t.Errorf("accept while the service is throttling: got %v, want an error that says so, and for how long", err)
		}
	}
	end()
	r := eventually(t, sessions)
	complete(t, r, receive(t, r, 1)...)
	release(t, r)
}

func (s suite) doubtedConnectionIsReplaced(t *testing.T) {
	sessions := s.at(t)
	s.send(t, message("1", "a"))
	r := mustAccept(t, sessions)
	receive(t, r, 1)
	sessions.Doubt(0, time.Now())
	sessions.Doubt(0, time.Now())
	// The session went with its connection, long before its lock is over, and
	// its message comes again.
	again, err := accept(t, sessions, 0, 5*time.Second)
	if err != nil {
		t.Fatalf("accept over the new connection: %v", err)
	}
	if got := receive(t, again, 1)[0]; got.ID != "1" {
		t.Errorf("got %s, want message 1", got.ID)
	}
	release(t, again)
}

func (s suite) cutConnectionEndsItsSessions(t *testing.T) {
	sessions, way := s.through(t)
	s.send(t, message("1", "a"), message("1", "b"))
	received, waiting := mustAccept(t, sessions), mustAccept(t, sessions)
	m := receive(t, received, 1)[0]
	receive(t, waiting, 1)
	over := make(chan struct{})
	go func() {
		defer func() { over <- struct{}{} }()
		ends(t, waiting)
	}()
	way.Cut()
	<-over
	settleFails(t, received, m)
	way.Open(t)
	for range 2 {
		r := eventually(t, sessions)
		complete(t, r, receive(t, r, 1)...)
		release(t, r)
	}
}

// A session that learns late that its connection is gone must not affect those
// that have been taken over the next one.
func (s suite) lateLearnerHarmsNoOther(t *testing.T) {
	sessions, way := s.through(t)
	s.send(t, message("1", "a"), message("2", "b"))
	late := []session.Receiver{mustAccept(t, sessions), mustAccept(t, sessions)}
	received := receive(t, late[0], 1)[0]
	way.Cut()
	way.Open(t)
	r := eventually(t, sessions)
	got := receive(t, r, 1)[0]
	for _, old := range late {
		ends(t, old)
		settleFails(t, old, received)
		leave(t, old)
	}
	complete(t, r, got)
	release(t, r)
}

// A connection that says nothing more, without an end that could be seen: every
// call ends at its deadline, and once it is doubted another takes its place.
func (s suite) silentConnectionIsLeft(t *testing.T) {
	sessions, way := s.through(t)
	s.send(t, numbered(2)...)
	r := mustAccept(t, sessions)
	m := receive(t, r, 1)[0]
	way.Freeze()
	within := func(what string, call func(ctx context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- call(ctx) }()
		select {
		case err := <-ended:
			if err == nil {
				t.Errorf("%s over a silent connection: got nil, want an error", what)
			}
		case <-time.NewTimer(10 * time.Second).C:
			t.Fatalf("%s over a silent connection does not end", what)
		}
	}
	within("accept", func(ctx context.Context) error { _, err := sessions.Accept(ctx, 0); return err })
	within("settle", func(ctx context.Context) error { return r.Settle(ctx, m, session.Verdict{}) })
	within("renew", func(ctx context.Context) error { _, err := r.RenewLock(ctx); return err })
	within("close", r.Close)
	sessions.Doubt(0, time.Now())
	sessions.Doubt(0, time.Now())
	// The lock ends by its time, for the service has seen nothing either.
	again := eventually(t, sessions)
	if got := receive(t, again, 2); got[0].ID != "1" {
		t.Errorf("got %q first, want message 1", got[0].ID)
	}
	release(t, again)
}

func (s suite) refusalSaysWhatAndWhere(t *testing.T) {
	for _, tt := range []struct{ name, topic, subscription string }{
		{"a topic that is not there", "nowhere", "projector"},
		{"a subscription that is not there", "none", "nobody"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sessions := s.at2(t, Place{ConnectionString: s.servers.ServiceBus, Topic: tt.topic, Subscription: tt.subscription})
			_, err := accept(t, sessions, 0, 10*time.Second)
			refuses(t, err, tt.topic, tt.subscription)
		})
	}
}

func refuses(t *testing.T, err error, topic, subscription string) {
	t.Helper()
	if err == nil || errors.Is(err, session.ErrNoSession) || !strings.Contains(err.Error(), fmt.Sprintf("subscription %q of topic %q refuses", subscription, topic)) {
		t.Errorf("got %v, want that the subscription refuses", err)
	}
}

func (s suite) entityThatGoesAway(t *testing.T) {
	client, err := admin.NewClientFromConnectionString(s.servers.ServiceBus, &admin.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: &http.Client{Transport: &http.Transport{TLSClientConfig: trust(t, s.servers.ManagementURL), DisableKeepAlives: true}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.send(t, message("1", "a"))
	sessions := s.at(t)
	r := mustAccept(t, sessions)
	m := receive(t, r, 1)[0]
	if _, err := client.DeleteSubscription(t.Context(), topic(t), "projector", nil); err != nil {
		t.Fatal(err)
	}
	settleFails(t, r, m)
	leave(t, r)
	_, err = accept(t, sessions, 0, 10*time.Second)
	refuses(t, err, topic(t), "projector")
}

// signature is a connection string with a token that ends, in place of a key.
func signature(connectionString string, ends time.Time) string {
	find := func(name string) string {
		return regexp.MustCompile(name + `=([^;]+)`).FindStringSubmatch(connectionString)[1]
	}
	host := strings.TrimPrefix(find("Endpoint"), "sb://")
	resource := strings.ToLower(url.QueryEscape("amqp://" + host))
	mac := hmac.New(sha256.New, []byte(find("SharedAccessKey")))
	fmt.Fprintf(mac, "%s\n%d", resource, ends.Unix())
	return fmt.Sprintf("Endpoint=sb://%s;SharedAccessSignature=SharedAccessSignature sr=%s&sig=%s&se=%d&skn=%s;UseDevelopmentEmulator=true",
		host, resource, url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil))), ends.Unix(), find("SharedAccessKeyName"))
}

// A token that ends and cannot be had anew ends what is held, and accepts say
// that they are refused.
func (s suite) tokenThatEnds(t *testing.T) {
	servers := sandboxtest.StartWith(t, sandboxtest.Topics("token"), "--check-sas")
	sandboxtest.Send(t, servers, "token", message("1", "a"))
	sessions := s.at2(t, Place{ConnectionString: signature(servers.ServiceBus, time.Now().Add(15*time.Second)), Topic: "token", Subscription: "projector"})
	r := mustAccept(t, sessions)
	m := receive(t, r, 1)[0]
	for deadline := time.Now().Add(time.Minute); ; {
		_, err := accept(t, sessions, 0, 3*time.Second)
		if err != nil && strings.Contains(err.Error(), "refuses") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("accept long after the token's end: got %v, want that it is refused", err)
		}
	}
	settleFails(t, r, m)
	leave(t, r)
}

func (s suite) sessionsByTLSAndWebSockets(t *testing.T) {
	if s.servers.ManagementURL == "" {
		t.Skip("the certificate of other servers is not known")
	}
	place := Place{ConnectionString: strings.Replace(s.servers.ServiceBus, "UseDevelopmentEmulator=true;", "", 1), Topic: topic(t), Subscription: "projector"}
	large := message("1", "a")
	large.Body = bytes.Repeat([]byte("large"), 20_000)
	place.TLS = trust(t, s.servers.ManagementURL)
	for _, place.WebSockets = range []bool{false, true} {
		s.send(t, large)
		r := mustAccept(t, s.at2(t, place))
		got := receive(t, r, 1)[0]
		if !slices.Equal(got.Body, large.Body) {
			t.Errorf("websockets %t: got %d bytes, want the %d of the message", place.WebSockets, len(got.Body), len(large.Body))
		}
		complete(t, r, got)
		release(t, r)
	}
	// The sandbox speaks plain AMQP on this port, too: without its certificate it
	// is not trusted, so what came before came by TLS.
	place.TLS = nil
	for _, place.WebSockets = range []bool{false, true} {
		if _, err := accept(t, s.at2(t, place), 0, 10*time.Second); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("accept without trust, websockets %t: %v, want the certificate refused", place.WebSockets, err)
		}
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
	certificate := read(t, response.Body)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(certificate) {
		t.Fatalf("no certificate in %q", certificate)
	}
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}
