package servicebus_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/sandboxtest"
	"changerelay/services/projector/internal/servicebus"
	"changerelay/services/projector/internal/session"
	"changerelay/services/projector/internal/session/sessiontest"
)

var servers *sandboxtest.Endpoints

// Each test has a topic of its own in the one sandbox.
func TestMain(m *testing.M) {
	var err error
	servers, err = sandboxtest.Start(sandboxtest.Topics(append(sessiontest.Topics(), "silent", "waiting", "counted", "peeked")...))
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
	return openAs(t, servicebus.Config{ConnectionString: servers.ServiceBus, Topic: topic, Subscription: subscription})
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

func TestSubscription_IsAsTheEngineAsks(t *testing.T) {
	t.Parallel()
	sessiontest.Run(t, servers, func(place sessiontest.Place, log zerolog.Logger) (sessiontest.Sessions, error) {
		return servicebus.New(servicebus.Config{
			ConnectionString: place.ConnectionString, WebSockets: place.WebSockets, TLS: place.TLS,
			Topic: place.Topic, Subscription: place.Subscription,
			Connections: 2, Linger: place.Linger, CloseTime: 5 * time.Second,
		}, log)
	})
}

// A connection over which nothing comes any more is replaced although another one answers,
// so that nobody doubts it.
func TestSubscription_AConnectionThatAnswersNoAcceptIsReplaced(t *testing.T) {
	t.Parallel()
	const topic = "silent"
	bus := regexp.MustCompile(`sb://([^;/]+)`).FindStringSubmatch(servers.ServiceBus)[1]
	way := sandboxtest.NewProxy(t, bus)
	way.Open(t)
	s := openAs(t, servicebus.Config{ConnectionString: strings.Replace(servers.ServiceBus, bus, way.Addr, 1), Topic: topic, Subscription: "projector"})
	sandboxtest.Send(t, servers, topic, message("1", "a"))
	release(t, mustAccept(t, s, 0))
	way.Freeze()
	release(t, mustAccept(t, s, 1))
	for range 6 {
		if r, err := accept(t, s, 0, time.Second); err == nil {
			release(t, r)
			return
		}
	}
	t.Error("six accepts over the silent connection were not answered, want it replaced after three")
}

func TestSubscription_AConnectionStringIsNotQuoted(t *testing.T) {
	t.Parallel()
	_, err := servicebus.New(servicebus.Config{ConnectionString: "Endpoint=sb://x;SharedAccessKey=canary"}, zerolog.Nop())
	if err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v, want an error without the key", err)
	}
}
