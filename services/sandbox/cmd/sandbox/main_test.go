package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// asSandbox makes the test binary run as the sandbox.
const asSandbox = "RUN_AS_SANDBOX"

func TestMain(m *testing.M) {
	if os.Getenv(asSandbox) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// process is a sandbox in a process of its own.
type process struct {
	cmd  *exec.Cmd
	vars map[string]string
}

func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	path, err := os.Executable()
	must(t, err)
	all := append([]string{
		"--mongo", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--management", "127.0.0.1:0", "--http", "127.0.0.1:0",
	}, args...)
	p := &process{cmd: exec.Command(path, all...), vars: map[string]string{}}
	p.cmd.Env = append(os.Environ(), asSandbox+"=1")
	p.cmd.Stderr = io.Discard
	stdout, err := p.cmd.StdoutPipe()
	must(t, err)
	must(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // it may have ended
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if lines.Text() == "ready" {
			return p
		}
		name, value, ok := strings.Cut(lines.Text(), "=")
		if !ok || !strings.HasPrefix(value, "'") || !strings.HasSuffix(value, "'") {
			t.Fatalf("got line %q, want a shell assignment", lines.Text())
		}
		p.vars[name] = strings.Trim(value, "'")
	}
	t.Fatalf("got the end of the output after %v, want ready", p.vars)
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// client connects to the process's MongoDB.
func (p *process) client(t *testing.T) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(p.vars["MONGODB_URI"]).SetServerSelectionTimeout(30 * time.Second))
	must(t, err)
	t.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()                    // the server may be dead: it is not told
		_ = client.Disconnect(over) // so that this is no failure
	})
	return client
}

func TestTheAddressesArePrintedAndATermSignalStops(t *testing.T) {
	t.Parallel()
	p := startProcess(t)
	for _, name := range []string{"MONGODB_URI", "SERVICEBUS_CONNECTION_STRING", "SERVICEBUS_MANAGEMENT_URL", "SANDBOX_URL"} {
		if p.vars[name] == "" {
			t.Errorf("got no %s in %v", name, p.vars)
		}
	}
	must(t, p.client(t).Ping(t.Context(), nil))
	must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("got %v after SIGTERM, want exit code 0", err)
	}
}

func TestTheSandboxSaysItsVersionAndWhetherItIsUp(t *testing.T) {
	t.Parallel()
	p := startProcess(t)
	up := strings.TrimPrefix(p.vars["SANDBOX_URL"], "http://")
	for name, tt := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"version":                      {[]string{"--version"}, stopped, "sandbox devel", ""},
		"health of one that is up":     {[]string{"health", "--http", up}, stopped, "", ""},
		"health of nobody":             {[]string{"health", "--http", "127.0.0.1:1"}, failed, "", "ask http://127.0.0.1:1/healthz"},
		"health with another word":     {[]string{"health", "please"}, badConfiguration, "", "unexpected argument"},
		"health at what is no address": {[]string{"health", "--http", "here"}, failed, "", "address of the status page"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), tt.args, &stdout, &stderr); code != tt.code || !strings.Contains(stdout.String(), tt.stdout) || !strings.Contains(stderr.String(), tt.stderr) {
			t.Errorf("%s: got %d with %q and %q, want %d with %q and %q", name, code, &stdout, &stderr, tt.code, tt.stdout, tt.stderr)
		}
	}
}

// TestAcknowledgedWritesOutliveAKill writes from several connections until the
// process is killed, and looks for every write that was acknowledged.
func TestAcknowledgedWritesOutliveAKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const lives, writers, enough = 3, 4, 200
	var acknowledged []string
	var token bson.Raw
	for life := range lives {
		p := startProcess(t, "--data", dir)
		client := p.client(t)
		coll := client.Database("test").Collection("things")
		if token == nil {
			stream, err := coll.Watch(t.Context(), mongo.Pipeline{})
			must(t, err)
			token = stream.ResumeToken()
			must(t, stream.Close(t.Context()))
		}
		expectAll(t, coll, acknowledged)
		acknowledged = append(acknowledged, writeUntilKilled(t, p, coll, fmt.Sprint("life ", life), writers, enough)...)
	}
	p := startProcess(t, "--data", dir)
	coll := p.client(t).Database("test").Collection("things")
	expectAll(t, coll, acknowledged)
	expectEvents(t, coll, token, acknowledged)
}

// writeUntilKilled returns the _ids that were acknowledged.
func writeUntilKilled(t *testing.T, p *process, coll *mongo.Collection, prefix string, writers, enough int) []string {
	t.Helper()
	acks := make(chan string)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				id := fmt.Sprint(prefix, " writer ", w, " write ", n)
				if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: id}}); err != nil {
					return
				}
				acks <- id
			}
		})
	}
	go func() {
		all.Wait()
		close(acks)
	}()
	var acknowledged []string
	for id := range acks {
		acknowledged = append(acknowledged, id)
		if len(acknowledged) == enough {
			must(t, p.cmd.Process.Kill())
			_ = p.cmd.Wait() // it was killed
			cancel()
		}
	}
	return acknowledged
}

func expectAll(t *testing.T, coll *mongo.Collection, ids []string) {
	t.Helper()
	cursor, err := coll.Find(t.Context(), bson.D{})
	must(t, err)
	var docs []struct {
		ID string `bson:"_id"`
	}
	must(t, cursor.All(t.Context(), &docs))
	there := map[string]bool{}
	for _, doc := range docs {
		there[doc.ID] = true
	}
	for _, id := range ids {
		if !there[id] {
			t.Errorf("got %d documents without %q, which was acknowledged", len(docs), id)
		}
	}
}

// expectEvents reads the change stream over all lives.
func expectEvents(t *testing.T, coll *mongo.Collection, token bson.Raw, ids []string) {
	t.Helper()
	stream, err := coll.Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(token))
	must(t, err)
	defer stream.Close(context.Background())
	missing := map[string]bool{}
	for _, id := range ids {
		missing[id] = true
	}
	for len(missing) > 0 {
		if !stream.Next(t.Context()) {
			t.Fatalf("got the end of the stream with %d events missing: %v", len(missing), stream.Err())
		}
		delete(missing, stream.Current.Lookup("documentKey", "_id").StringValue())
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "Config.json")
	must(t, os.WriteFile(broken, []byte("{"), 0o600))
	free := []string{"--mongo", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--management", "127.0.0.1:0", "--http", "127.0.0.1:0"}
	for name, c := range map[string]struct {
		args []string
		want int
		says string
	}{
		"help":                        {[]string{"--help"}, stopped, "-mongo address"},
		"an unknown flag":             {[]string{"--nosuch"}, badConfiguration, "nosuch"},
		"an argument":                 {[]string{"nosuch"}, badConfiguration, `unexpected argument "nosuch"`},
		"a log level that is none":    {[]string{"--log-level", "loud"}, badConfiguration, "loud"},
		"a negative bound":            {[]string{"--oplog-bytes", "-1"}, badConfiguration, "must be positive"},
		"a key that is none":          {[]string{"--sas-key", "name"}, badConfiguration, "NAME:RIGHTS=SECRET"},
		"a key for nothing":           {[]string{"--sas-key", "name:Send=secret"}, badConfiguration, "--check-sas"},
		"a right that is none":        {append([]string{"--check-sas", "--sas-key", "name:Read=secret"}, free...), badConfiguration, "is none of Listen"},
		"a configuration not there":   {append([]string{"--config", broken + ".no"}, free...), badConfiguration, "no such file"},
		"a configuration that broken": {append([]string{"--config", broken}, free...), badConfiguration, "Service Bus configuration"},
		"users that are none":         {append([]string{"--auth", broken}, free...), badConfiguration, "users and roles"},
		"an address that is none":     {[]string{"--mongo", "nowhere:port"}, failed, "listen for MongoDB clients"},
		"a data directory that is a file": {
			append([]string{"--data", broken}, free...), failed, "recover MongoDB",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			got := run(t.Context(), c.args, &stdout, &stderr)
			if got != c.want || !strings.Contains(stderr.String(), c.says) {
				t.Errorf("got exit code %d and %q, want %d and a text with %q", got, stderr.String(), c.want, c.says)
			}
		})
	}
}
