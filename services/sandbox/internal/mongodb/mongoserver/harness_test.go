package mongoserver_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine"
	"changerelay/services/sandbox/internal/mongodb/mongoserver"
)

// harness is a running server with a client of the official driver.
type harness struct {
	server *command.Server
	engine *engine.Engine
	client *mongo.Client
	db     *mongo.Database
	// stop ends the server before the test does.
	stop func()
}

// start runs a server until the test ends. The test's own database is db.
func start(t testing.TB, config engine.Config) *harness {
	t.Helper()
	h := startStoppable(t, engine.New(config))
	h.client = h.connect(t)
	h.db = h.client.Database("test")
	return h
}

// startStoppable runs a server without a client.
func startStoppable(t testing.TB, e *engine.Engine) *harness {
	t.Helper()
	return serve(t, command.Config{Engine: e})
}

// serve runs a server on a free port until the test ends.
func serve(t testing.TB, config command.Config) *harness {
	t.Helper()
	h := &harness{engine: config.Engine}
	config.Address = "127.0.0.1:0"
	config.Log = zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel)
	var err error
	h.server, err = mongoserver.New(config)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- h.server.Run(ctx) }()
	go func() { done <- h.engine.Run(ctx) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("run: got %v, want nil", err)
			}
		}
	})
	t.Cleanup(h.stop)
	return h
}

// connect gives another client.
func (h *harness) connect(t testing.TB, more ...*options.ClientOptions) *mongo.Client {
	t.Helper()
	all := append([]*options.ClientOptions{
		options.Client().ApplyURI(h.server.URI()).
			SetServerSelectionTimeout(30 * time.Second).
			// A client that has lost a connection may wait for the next heartbeat.
			SetHeartbeatInterval(500 * time.Millisecond),
	}, more...)
	client, err := mongo.Connect(all...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Disconnect(context.Background()); err != nil {
			t.Errorf("disconnect: %v", err)
		}
	})
	return client
}

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
