package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
	// log is what it wrote to standard error; read it after Wait.
	log bytes.Buffer
}

func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	path, err := os.Executable()
	must(t, err)
	return startCommand(t, exec.Command(path, withFreePorts(args)...))
}

func withFreePorts(args []string) []string {
	return append([]string{
		"--mongo", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--management", "127.0.0.1:0", "--http", "127.0.0.1:0",
	}, args...)
}

// startCommand starts a command that ends up as this binary.
func startCommand(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, vars: map[string]string{}}
	p.cmd.Env = append(os.Environ(), asSandbox+"=1")
	p.cmd.Stderr = &p.log
	stdout, err := p.cmd.StdoutPipe()
	must(t, err)
	must(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		_ = p.cmd.Wait()
	})
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
	t.Cleanup(func() { forget(client) }) // the server may be dead: it is not told
	return client
}

func TestSandbox_TheAddressesArePrintedAndATermSignalStops(t *testing.T) {
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

func TestSandbox_TheSandboxSaysItsVersionAndWhetherItIsUp(t *testing.T) {
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

func TestSandbox_ExitCodes(t *testing.T) {
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
