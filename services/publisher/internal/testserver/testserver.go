// Package testserver gives tests a MongoDB replica set and a Service Bus
// namespace over real sockets: the sandbox, started as a process, or what
// TEST_MONGODB_URI and TEST_SERVICEBUS_CONNECTION_STRING name.
package testserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/goleak"
)

// Topic is the topic that every namespace has, with its session subscription.
const (
	Topic        = "changes"
	Subscription = "projector"
)

// Servers are the connection strings.
type Servers struct {
	MongoURI   string
	ServiceBus string
	// Management is the URL of the namespace's management API; only a sandbox's
	// is known.
	Management string
	// Sandbox is the URL of a sandbox's status page, which takes faults.
	Sandbox string
}

// builtIn is the directory of a binary that was built for this test binary.
var builtIn string

// shared is the one sandbox of a test binary.
var shared struct {
	once sync.Once
	Servers
	err  error
	stop func()
}

// Main runs a test binary's tests, stops the sandbox if one was started, and
// fails when a goroutine was left behind. It is to be called from TestMain.
func Main(m *testing.M) {
	code := m.Run()
	if shared.stop != nil {
		shared.stop()
	}
	if builtIn != "" {
		_ = os.RemoveAll(builtIn)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code) //nolint:forbidigo // what TestMain is for
}

// Get returns the servers, and starts the sandbox when it is needed first. All
// tests of a binary share them, so each must use names of its own.
func Get(t *testing.T) Servers {
	t.Helper()
	shared.once.Do(func() {
		shared.Servers = Servers{
			MongoURI:   os.Getenv("TEST_MONGODB_URI"),
			ServiceBus: os.Getenv("TEST_SERVICEBUS_CONNECTION_STRING"),
		}
		if shared.MongoURI == "" || shared.ServiceBus == "" {
			shared.Servers, shared.stop, shared.err = startSandbox()
		}
	})
	if shared.err != nil {
		t.Fatalf("start the sandbox: %v", shared.err)
	}
	return shared.Servers
}

// Start starts a sandbox of the test's own, with further arguments, which ends
// with the test. Where servers are named it says that they were not tried.
func Start(t *testing.T, args ...string) Servers {
	t.Helper()
	if os.Getenv("TEST_MONGODB_URI") != "" || os.Getenv("TEST_SERVICEBUS_CONNECTION_STRING") != "" {
		t.Logf("NOT RUN on the servers that are named: %s has a sandbox of its own", t.Name())
	}
	servers, stop, err := startSandbox(args...)
	if err != nil {
		t.Fatalf("start the sandbox: %v", err)
	}
	t.Cleanup(stop)
	return servers
}

// Mongo returns a client of the shared MongoDB.
func Mongo(t *testing.T) *mongo.Client {
	t.Helper()
	return Connect(t, Get(t).MongoURI)
}

// Connect returns a client that is closed with the test.
func Connect(t *testing.T, uri string) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = client.Disconnect(ctx) // the test is over
	})
	return client
}

// Name returns a name that no other test uses.
func Name(t *testing.T) string {
	t.Helper()
	return "test_" + bson.NewObjectID().Hex()
}

// Eventually waits for what until shortly before the test's deadline.
func Eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx := t.Context()
	if deadline, set := t.Deadline(); set {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-2*time.Second))
		defer cancel()
	}
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func startSandbox(args ...string) (Servers, func(), error) {
	dir, err := os.MkdirTemp("", "sandbox-")
	if err != nil {
		return Servers{}, nil, err
	}
	binary, err := built()
	if err != nil {
		return Servers{}, nil, err
	}
	logged, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return Servers{}, nil, err
	}
	// The shell ends the sandbox when its own input ends, which it does with this
	// process, however that may end.
	command := exec.Command("sh", append([]string{
		"-c", `"$0" "$@" </dev/null & exec >/dev/null; cat; kill -9 $!; wait $! 2>/dev/null`, binary,
		"--mongo", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--management", "127.0.0.1:0", "--http", "127.0.0.1:0",
	}, args...)...)
	command.Stderr = logged
	hold, err := command.StdinPipe()
	if err != nil {
		return Servers{}, nil, err
	}
	said, err := command.StdoutPipe()
	if err != nil {
		return Servers{}, nil, err
	}
	if err := command.Start(); err != nil {
		return Servers{}, nil, err
	}
	stop := func() {
		_ = hold.Close()
		_ = command.Wait() // it was killed
		_ = logged.Close()
		_ = os.RemoveAll(dir)
	}
	servers, err := readServers(said)
	if err != nil {
		log, _ := os.ReadFile(logged.Name())
		stop()
		return Servers{}, nil, fmt.Errorf("%w; it logged %s", err, log)
	}
	return servers, stop, nil
}

// built is the sandbox's binary: the one that SANDBOX_BIN names, or else built
// once for the test binary.
var built = sync.OnceValues(func() (string, error) {
	if binary := os.Getenv("SANDBOX_BIN"); binary != "" {
		return binary, nil
	}
	return buildSandbox()
})

func buildSandbox() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "sandbox-build-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	binary := filepath.Join(dir, "sandbox")
	build := exec.Command("go", "build", "-o", binary, "./cmd/sandbox")
	build.Dir = filepath.Join(root, "..", "sandbox")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the sandbox: %w: %s", err, said)
	}
	return binary, nil
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod above the test")
		}
	}
	return "", err
}

// readServers reads NAME='value' lines up to the line "ready".
func readServers(from io.Reader) (Servers, error) {
	var servers Servers
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "=")
		value = strings.Trim(value, "'")
		switch name {
		case "MONGODB_URI":
			servers.MongoURI = value
		case "SERVICEBUS_CONNECTION_STRING":
			servers.ServiceBus = value
		case "SERVICEBUS_MANAGEMENT_URL":
			servers.Management = value
		case "SANDBOX_URL":
			servers.Sandbox = value
		case "ready":
			return servers, nil
		}
	}
	return Servers{}, errors.Join(errors.New("the sandbox ended before it was ready"), lines.Err())
}
