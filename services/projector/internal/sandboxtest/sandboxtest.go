// Package sandboxtest gives tests a MongoDB and a Service Bus to talk to: the
// ones named by TEST_MONGODB_URI and TEST_SERVICEBUS_CONNECTION_STRING, or a
// sandbox process, built from its module or taken from SANDBOX_BIN.
package sandboxtest

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Endpoints are where the servers listen.
type Endpoints struct {
	MongoURI         string
	ServiceBus       string // connection string
	ManagementURL    string
	SandboxURL       string
	stop             func() error
	workingDirectory string
}

// Config starts the sandbox with a configuration of the emulator's format; ""
// for its own.
type Config string

// Start starts the servers. Stop must be called when they are not needed any more.
func Start(config Config) (*Endpoints, error) {
	e := &Endpoints{
		MongoURI:   os.Getenv("TEST_MONGODB_URI"),
		ServiceBus: os.Getenv("TEST_SERVICEBUS_CONNECTION_STRING"),
		stop:       func() error { return nil },
	}
	if e.MongoURI != "" && e.ServiceBus != "" {
		return e, nil
	}
	return launched(config)
}

// StartGuarded starts a sandbox whose MongoDB has these users and roles, in the
// form that it reads with --auth, and more arguments. MongoURI names no user.
func StartGuarded(t *testing.T, config Config, accounts string, more ...string) *Endpoints {
	t.Helper()
	path := filepath.Join(t.TempDir(), "accounts.json")
	if err := os.WriteFile(path, []byte(accounts), 0o600); err != nil {
		t.Fatal(err)
	}
	return StartWith(t, config, append(more, "--auth", path)...)
}

// StartWith starts a sandbox with more arguments, until the test's end. Where servers are
// named it says that they were not tried.
func StartWith(t *testing.T, config Config, args ...string) *Endpoints {
	t.Helper()
	if os.Getenv("TEST_MONGODB_URI") != "" || os.Getenv("TEST_SERVICEBUS_CONNECTION_STRING") != "" {
		t.Logf("NOT RUN on the servers that are named: %s has a sandbox of its own", t.Name())
	}
	e, err := launched(config, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Errorf("stop the sandbox: %v", err)
		}
	})
	return e
}

// launched starts a sandbox process.
func launched(config Config, args ...string) (*Endpoints, error) {
	e := &Endpoints{}
	dir, err := os.MkdirTemp("", "projector-sandbox-")
	if err != nil {
		return nil, err
	}
	e.workingDirectory = dir
	binary, err := build(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := e.launch(binary, config, args); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return e, nil
}

// Stop ends the sandbox.
func (e *Endpoints) Stop() error {
	err := e.stop()
	if e.workingDirectory != "" {
		err = errors.Join(err, os.RemoveAll(e.workingDirectory))
	}
	return err
}

// build returns the path of a sandbox binary.
func build(dir string) (string, error) {
	if binary := os.Getenv("SANDBOX_BIN"); binary != "" {
		return binary, nil
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "sandbox")
	cmd := exec.Command("go", "build", "-o", binary, "./cmd/sandbox")
	cmd.Dir = filepath.Join(root, "..", "sandbox")
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the sandbox: %w\n%s", err, output)
	}
	return binary, nil
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("find the module's root: no go.mod above the working directory")
}

// launch starts the process and reads its addresses.
func (e *Endpoints) launch(binary string, config Config, more []string) error {
	args := []string{"--mongo", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--management", "127.0.0.1:0", "--http", "127.0.0.1:0"}
	args = append(args, more...)
	if config != "" {
		path := filepath.Join(e.workingDirectory, "Config.json")
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			return err
		}
		args = append(args, "--config", path)
	}
	// The shell ends the sandbox when its own input ends, which it does with this
	// process, however that may end.
	cmd := exec.Command("sh", append([]string{"-c", `"$0" "$@" </dev/null & exec >/dev/null; cat; kill -9 $!; wait $! 2>/dev/null`, binary}, args...)...)
	logs, err := os.Create(filepath.Join(e.workingDirectory, "sandbox.log"))
	if err != nil {
		return err
	}
	cmd.Stderr = logs
	hold, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the sandbox: %w", err)
	}
	e.stop = func() error {
		_ = hold.Close()
		_ = cmd.Wait() // it was killed
		return logs.Close()
	}
	if err := e.readAddresses(stdout); err != nil {
		text, _ := os.ReadFile(logs.Name())
		return errors.Join(fmt.Errorf("%w\n%s", err, text), e.stop())
	}
	return nil
}

func (e *Endpoints) readAddresses(stdout io.Reader) error {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "=")
		value = strings.Trim(value, "'")
		switch name {
		case "MONGODB_URI":
			e.MongoURI = value
		case "SERVICEBUS_CONNECTION_STRING":
			e.ServiceBus = value
		case "SERVICEBUS_MANAGEMENT_URL":
			e.ManagementURL = value
		case "SANDBOX_URL":
			e.SandboxURL = value
		case "ready":
			return nil
		}
	}
	return errors.New("the sandbox ended before it was ready")
}

// Mongo connects to MongoDB with a database of the test's own, which is dropped
// at the end. monitor may be nil.
func (e *Endpoints) Mongo(t *testing.T, monitor *event.CommandMonitor) (*mongo.Client, string) {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(e.MongoURI).SetMonitor(monitor).SetTimeout(20 * time.Second))
	if err != nil {
		t.Fatalf("connect to MongoDB: %v", err)
	}
	database := "t_" + rand.Text()[:16]
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx := context.WithoutCancel(t.Context())
		if err := client.Database(database).Drop(ctx); err != nil {
			t.Logf("drop database %s: %v", database, err)
		}
		if err := client.Disconnect(ctx); err != nil {
			t.Errorf("disconnect: %v", err)
		}
	})
	return client, database
}

// Documents returns a collection's documents by their key.
func Documents(t *testing.T, db *mongo.Database, collection string) map[string]bson.Raw {
	t.Helper()
	cursor, err := db.Collection(collection).Find(t.Context(), bson.D{})
	if err != nil {
		t.Fatalf("find in %s: %v", collection, err)
	}
	var all []bson.Raw
	if err := cursor.All(t.Context(), &all); err != nil {
		t.Fatalf("read %s: %v", collection, err)
	}
	byKey := make(map[string]bson.Raw, len(all))
	for _, document := range all {
		byKey[document.Lookup("_id").StringValue()] = document
	}
	return byKey
}
