package servicebus_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/servicebus"
	"changerelay/services/projector/internal/session"
)

var servers *sandboxtest.Endpoints

// Each test has a topic of its own in the one sandbox.
func TestMain(m *testing.M) {
	var err error
	servers, err = sandboxtest.Start(sandboxtest.Topics("whole", "none", "given", "dead", "renew", "lost", "panics", "cancel", "doubt", "late", "secure", "together", "waiting"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := errors.Join(servers.Stop(), goleak.Find()); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func open(t *testing.T, topic, subscription string) *servicebus.Subscription {
	t.Helper()
	return openBy(t, servers.ServiceBus, topic, subscription)
}

func openBy(t *testing.T, connectionString, topic, subscription string) *servicebus.Subscription {
	t.Helper()
	return openAs(t, servicebus.Config{ConnectionString: connectionString, Topic: topic, Subscription: subscription})
}

func openAs(t *testing.T, cfg servicebus.Config) *servicebus.Subscription {
	t.Helper()
	cfg.Connections, cfg.Linger, cfg.CloseTime = 2, 50*time.Millisecond, 5*time.Second
	s, err := servicebus.New(cfg, zerolog.Nop())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func accept(t *testing.T, s *servicebus.Subscription, slot int, within time.Duration) (session.Receiver, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return s.Accept(ctx, slot)
}

func mustAccept(t *testing.T, s *servicebus.Subscription, slot int) session.Receiver {
	t.Helper()
	r, err := accept(t, s, slot, 30*time.Second)
	if err != nil {
		t.Fatalf("accept: %v", err)
	}
	return r
}

func receive(t *testing.T, r session.Receiver, n int) []session.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	messages, err := r.Receive(ctx, n)
	if err != nil || len(messages) != n {
		t.Fatalf("receive: got %d messages and %v, want %d", len(messages), err, n)
	}
	return messages
}

func release(t *testing.T, r session.Receiver) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Errorf("give the session back: %v", err)
	}
}

func message(id, sessionID string) contract.Message {
	return contract.Message{
		ID: id, SessionID: sessionID, PartitionKey: sessionID, Subject: "Happened",
		ContentType: contract.ContentTypeJSON, ContentEncoding: "gzip", Body: []byte{0, 1, 2, 255},
		Properties: map[string]any{"text": "x", "number": int64(7), "small": int32(-1), "flag": true, "real": 1.5},
	}
}

func TestAMessageComesThroughWhole(t *testing.T) {
	t.Parallel()
	want := message("id-1", "a")
	sandboxtest.Send(t, servers, "whole", want, message("id-2", "a"))
	r := mustAccept(t, open(t, "whole", "projector"), 0)
	if r.SessionID() != "a" || time.Until(r.LockedUntil()) <= 0 || time.Until(r.LockedUntil()) > 11*time.Second {
		t.Errorf("session %q locked for %s, want a for ten seconds", r.SessionID(), time.Until(r.LockedUntil()))
	}
	messages := receive(t, r, 2)
	got := messages[0]
	if got.ID != want.ID || got.SessionID != want.SessionID || got.PartitionKey != want.PartitionKey || got.Subject != want.Subject ||
		got.ContentType != want.ContentType || got.ContentEncoding != want.ContentEncoding || !slices.Equal(got.Body, want.Body) || !maps.Equal(got.Properties, want.Properties) {
		t.Errorf("got %+v, want %+v", got.Message, want)
	}
	if got.SequenceNumber <= 0 || messages[1].SequenceNumber <= got.SequenceNumber || time.Since(got.EnqueuedAt) > time.Minute {
		t.Errorf("numbers %d and %d, enqueued at %s; want rising numbers and the time", got.SequenceNumber, messages[1].SequenceNumber, got.EnqueuedAt)
	}
	for _, m := range messages {
		if err := r.Settle(t.Context(), m, session.Verdict{}); err != nil {
			t.Errorf("complete: %v", err)
		}
	}
	release(t, r)
}

func TestNoSessionIsSaidInTime(t *testing.T) {
	t.Parallel()
	s := open(t, "none", "projector")
	// The client asks the service to answer up to 1 % before the deadline, so
	// now and then the answer is late by a hair.
	err := context.DeadlineExceeded
	for range 10 {
		if _, err = accept(t, s, 0, 2*time.Second); !errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	if !errors.Is(err, session.ErrNoSession) {
		t.Errorf("got %v, want ErrNoSession", err)
	}
}

func TestWhatIsNotSettledComesAgainAtOnceAndUncounted(t *testing.T) {
	t.Parallel()
	sandboxtest.Send(t, servers, "given", message("1", "a"), message("2", "a"), message("3", "a"))
	s := open(t, "given", "projector")
	for range 12 { // more often than a message may be delivered
		r := mustAccept(t, s, 0)
		if got := receive(t, r, 3); got[0].ID != "1" {
			t.Fatalf("first message: got %s, want 1", got[0].ID)
		}
		release(t, r)
	}
}

func TestADeadLetterKeepsReasonAndDescription(t *testing.T) {
	t.Parallel()
	sandboxtest.Send(t, servers, "dead", message("1", "a"))
	r := mustAccept(t, open(t, "dead", "projector"), 0)
	m := receive(t, r, 1)[0]
	long := strings.Repeat("ä", 5000)
	if err := r.Settle(t.Context(), m, session.Verdict{DeadLetter: true, Reason: "InvalidMessage", Description: long}); err != nil {
		t.Fatalf("dead-letter: %v", err)
	}
	release(t, r)
	dead, err := servers.Client(t).NewReceiverForSubscription("dead", "projector", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got, err := dead.ReceiveMessages(ctx, 1, nil)
	if err != nil || len(got) != 1 {
		t.Fatalf("receive the dead letter: got %d and %v", len(got), err)
	}
	if *got[0].DeadLetterReason != "InvalidMessage" || !strings.HasPrefix(long, *got[0].DeadLetterErrorDescription) || len(*got[0].DeadLetterErrorDescription) != 4096 {
		t.Errorf("got reason %q and %d bytes of description, want InvalidMessage and the first 4096", *got[0].DeadLetterReason, len(*got[0].DeadLetterErrorDescription))
	}
}

func TestALockIsRenewed(t *testing.T) {
	t.Parallel()
	sandboxtest.Send(t, servers, "renew", message("1", "a"))
	r := mustAccept(t, open(t, "renew", "projector"), 0)
	before := r.LockedUntil()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		until, err := r.RenewLock(ctx)
		if err != nil {
			t.Fatalf("renew: %v", err)
		}
		if until.After(before) {
			break
		}
	}
	release(t, r)
}

func TestALostSessionIsNotSettledAndSaysSoInTime(t *testing.T) {
	t.Parallel()
	sandboxtest.Send(t, servers, "lost", message("1", "a"))
	r := mustAccept(t, open(t, "lost", "projector"), 0)
	m := receive(t, r, 1)[0]
	// Another process gets the session once the lock is over.
	other := mustAccept(t, open(t, "lost", "projector"), 0)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := r.Settle(ctx, m, session.Verdict{}); err == nil {
		t.Error("settle a message of a lost session: got nil, want an error")
	}
	again := receive(t, other, 1)[0]
	if again.ID != "1" {
		t.Errorf("the other gets %s, want message 1", again.ID)
	}
	if err := other.Settle(t.Context(), again, session.Verdict{}); err != nil {
		t.Errorf("the other completes: %v", err)
	}
	release(t, other)
}

func TestAMessageThatTheClientCanNotReadIsAnErrorAndNoPanic(t *testing.T) {
	t.Parallel()
	odd := message("1", "a")
	odd.Properties = map[string]any{"DeadLetterReason": int64(1)}
	sandboxtest.Send(t, servers, "panics", odd)
	r := mustAccept(t, open(t, "panics", "projector"), 0)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if messages, err := r.Receive(ctx, 1); err == nil {
		t.Errorf("got %v, want an error", messages)
	}
	release(t, r)
}

// A cancelled accept must not come by a session afterwards and keep it.
func TestACancelledAcceptLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := open(t, "cancel", "projector")
	ctx, cancel := context.WithCancel(t.Context())
	accepting := make(chan error, 4)
	for slot := range 4 {
		go func() {
			_, err := s.Accept(ctx, slot)
			accepting <- err
		}()
	}
	// Each accept is under way or waits; either way it must end at once.
	if r, err := accept(t, open(t, "cancel", "projector"), 0, time.Second); err == nil {
		t.Fatalf("got session %q, want none", r.SessionID())
	}
	cancel()
	for range 4 {
		if err := <-accepting; err == nil {
			t.Error("a cancelled accept: got a session, want an error")
		}
	}
	sandboxtest.Send(t, servers, "cancel", message("1", "a"))
	r, err := accept(t, open(t, "cancel", "projector"), 0, 5*time.Second)
	if err != nil {
		t.Fatalf("accept after the cancelled ones: %v; want the session, which none of them keeps", err)
	}
	if err := r.Settle(t.Context(), receive(t, r, 1)[0], session.Verdict{}); err != nil {
		t.Errorf("complete: %v", err)
	}
	release(t, r)
}

func TestADoubtedConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	s := open(t, "doubt", "projector")
	sandboxtest.Send(t, servers, "doubt", message("1", "a"))
	r := mustAccept(t, s, 0)
	receive(t, r, 1)
	s.Doubt(0)
	s.Doubt(0)
	// The session went with its connection, long before its lock is over, and
	// its message comes again.
	again, err := accept(t, s, 0, 5*time.Second)
	if err != nil {
		t.Fatalf("accept over the new connection: %v", err)
	}
	if got := receive(t, again, 1)[0]; got.ID != "1" {
		t.Errorf("got %s, want message 1", got.ID)
	}
	release(t, again)
}

func TestSessionsAreTakenByTLSAndByWebSockets(t *testing.T) {
	t.Parallel()
	if servers.ManagementURL == "" {
		t.Skip("the certificate of other servers is not known")
	}
	cfg := servicebus.Config{
		ConnectionString: strings.Replace(servers.ServiceBus, "UseDevelopmentEmulator=true;", "", 1),
		Topic:            "secure", Subscription: "projector",
	}
	large := message("1", "a")
	large.Body = bytes.Repeat([]byte("large"), 20_000)
	cfg.TLS = trust(t, servers.ManagementURL)
	for _, cfg.WebSockets = range []bool{false, true} {
		sandboxtest.Send(t, servers, "secure", large)
		r := mustAccept(t, openAs(t, cfg), 0)
		got := receive(t, r, 1)[0]
		if !slices.Equal(got.Body, large.Body) {
			t.Errorf("websockets %t: got %d bytes, want the %d of the message", cfg.WebSockets, len(got.Body), len(large.Body))
		}
		if err := r.Settle(t.Context(), got, session.Verdict{}); err != nil {
			t.Errorf("complete, websockets %t: %v", cfg.WebSockets, err)
		}
		release(t, r)
	}
	// The sandbox speaks plain AMQP on this port, too: without its certificate it
	// is not trusted, so what came before came by TLS.
	cfg.TLS = nil
	for _, cfg.WebSockets = range []bool{false, true} {
		if _, err := accept(t, openAs(t, cfg), 0, 10*time.Second); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("accept without trust, websockets %t: %v, want the certificate refused", cfg.WebSockets, err)
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
	certificate, err := io.ReadAll(response.Body)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(certificate) {
		t.Fatalf("no certificate (%v) in %q", err, certificate)
	}
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

// The client closes the connection it has when a receiver finds that its own is
// gone, be that another by now; and for a settlement it takes the session again.
func TestASessionThatLearnsLateOfALostConnectionHarmsNoOther(t *testing.T) {
	t.Parallel()
	bus := regexp.MustCompile(`sb://([^;/]+)`).FindStringSubmatch(servers.ServiceBus)[1]
	way := sandboxtest.NewProxy(t, bus)
	way.Open(t)
	s := openBy(t, strings.Replace(servers.ServiceBus, bus, way.Addr, 1), "late", "projector")
	sandboxtest.Send(t, servers, "late", message("1", "a"), message("2", "b"))
	const slot = 0
	late := []session.Receiver{mustAccept(t, s, slot), mustAccept(t, s, slot)}
	received := receive(t, late[0], 1)[0]
	way.Cut()
	way.Open(t)
	// Both sessions are free again; one is taken over the next connection. Only an
	// accept that was under way when the loss was noticed may fail of it.
	r, err := accept(t, s, slot, 5*time.Second)
	if err != nil {
		r = mustAccept(t, s, slot)
	}
	got := receive(t, r, 1)[0]
	for _, old := range late {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if messages, err := old.Receive(ctx, 1); len(messages) > 0 || ctx.Err() != nil {
			t.Errorf("receive over the lost connection: got %d messages and %v, want none at once", len(messages), err)
		}
		if err := old.Settle(ctx, received, session.Verdict{}); err == nil || ctx.Err() != nil {
			t.Errorf("complete over the lost connection: %v, want an error at once", err)
		}
		cancel()
	}
	if err := r.Settle(t.Context(), got, session.Verdict{}); err != nil {
		t.Errorf("complete over the next connection: %v", err)
	}
	release(t, r)
}

func TestWhatIsRefusedSaysWhatAndWhere(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, topic, subscription string }{
		{"a topic that is not there", "nowhere", "projector"},
		{"a subscription that is not there", "none", "nobody"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := accept(t, open(t, tt.topic, tt.subscription), 0, 10*time.Second)
			if err == nil || errors.Is(err, session.ErrNoSession) || !strings.Contains(err.Error(), fmt.Sprintf("subscription %q of topic %q refuses", tt.subscription, tt.topic)) {
				t.Errorf("got %v, want that the subscription refuses", err)
			}
		})
	}
}

func TestAConnectionStringIsNotQuoted(t *testing.T) {
	t.Parallel()
	_, err := servicebus.New(servicebus.Config{ConnectionString: "Endpoint=sb://x;SharedAccessKey=canary"}, zerolog.Nop())
	if err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v, want an error without the key", err)
	}
}
