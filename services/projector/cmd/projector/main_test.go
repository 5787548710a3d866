package main

import (
	"bytes"
	"context"
	"net"
	"os/exec"
	"strings"
	"testing"

	"changerelay/services/projector/internal/command"
)

func TestProjector_ExitCodes(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	whole := map[string]string{
		"SERVICEBUS_CONNECTION_STRING": "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true;",
		"SERVICEBUS_TOPIC":             "t", "SERVICEBUS_SUBSCRIPTION": "s",
		"READMODEL_MONGODB_URI": "mongodb://127.0.0.1:1/?directConnection=true", "READMODEL_DATABASE": "d",
		"ADMIN_ADDR": "127.0.0.1:0",
	}
	tests := []struct {
		name  string
		args  []string
		set   map[string]string
		addr  string
		want  int
		says  string
		print string
	}{
		{"stopped as asked", nil, whole, "127.0.0.1:0", 0, "projector stopped", ""},
		{"an occupied port", nil, whole, taken.Addr().String(), 1, "projector: listen on ADMIN_ADDR", ""},
		{"no configuration", nil, nil, "127.0.0.1:0", 2, "SERVICEBUS_TOPIC: is required", ""},
		{"unknown arguments", []string{"--verbose"}, nil, "", 2, "there is no flag --verbose", ""},
		{"health of nobody", []string{"health"}, whole, "127.0.0.1:1", 1, "projector: ask http://127.0.0.1:1/live", ""},
		{"health without configuration", []string{"health"}, nil, "", 2, "SERVICEBUS_TOPIC: is required", ""},
		{"help", []string{"--help"}, nil, "", 0, "", "READMODEL_DATABASE"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for name := range whole {
				t.Setenv(name, tt.set[name])
			}
			t.Setenv("ADMIN_ADDR", tt.addr)
			var stdout, stderr bytes.Buffer
			if got := command.Program(version).Run(stopped, tt.args, &stdout, &stderr); got != tt.want {
				t.Errorf("exit code: got %d, want %d", got, tt.want)
			}
			if !strings.Contains(stderr.String(), tt.says) || !strings.Contains(stdout.String(), tt.print) {
				t.Errorf("stderr %q and stdout %q, want %q and %q", &stderr, &stdout, tt.says, tt.print)
			}
		})
	}
}

// What is shipped must not hold what only tests need: a stand-in for a server
// inside the binary could be talked to in place of the server.
func TestProjector_TheBinaryHoldsNoSandboxAndNoTestCode(t *testing.T) {
	t.Parallel()
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("list dependencies: %v", err)
	}
	for dependency := range strings.Lines(string(output)) {
		dependency = strings.TrimSpace(dependency)
		if strings.HasPrefix(dependency, "changerelay/") && (strings.Contains(dependency, "sandbox") || strings.HasSuffix(dependency, "test") || strings.Contains(dependency, "/publisher/")) || dependency == "testing" {
			t.Errorf("the binary depends on %s", dependency)
		}
	}
}
