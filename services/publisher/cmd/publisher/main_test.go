package main

import (
	"bytes"
	"context"
	"runtime/debug"
	"strings"
	"testing"

	"changerelay/services/publisher/internal/cli"
	"changerelay/services/publisher/internal/command"
	"changerelay/services/publisher/internal/config"
	"changerelay/services/publisher/internal/testserver"
)

func TestPublisher_TheCommandLine(t *testing.T) {
	t.Setenv("MONGODB_URI", "")
	t.Setenv("SOURCE_DATABASE", "")
	for name, tt := range map[string]struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"help lists every setting":        {[]string{"--help"}, cli.Done, "LEASE_RENEW_DEADLINE", ""},
		"help names the commands":         {[]string{"help"}, cli.Done, "look at the changes that could not be sent", ""},
		"version":                         {[]string{"--version"}, cli.Done, "publisher ", ""},
		"no configuration":                {nil, cli.Misused, "", "SOURCE_DATABASE: is required"},
		"a command without configuration": {[]string{"parked", "list"}, cli.Misused, "", "MONGODB_URI: is required"},
		"health without configuration":    {[]string{"health"}, cli.Misused, "", "MONGODB_URI: is required"},
		"an unknown command":              {[]string{"parked", "eat"}, cli.Misused, "", `there is no command "parked eat"; see publisher parked --help`},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := command.Program(version, config.Load).Run(t.Context(), tt.args, &stdout, &stderr)
			if code != tt.code || !strings.Contains(stdout.String(), tt.stdout) || !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("run = %d with %q and %q, want %d with %q and %q", code, &stdout, &stderr, tt.code, tt.stdout, tt.stderr)
			}
		})
	}
}

// TestRun_RefusesMorePartitionsThanFitInMemory has memory for eleven of them, or for one with
// 85 MiB in flight.
func TestRun_RefusesMorePartitionsThanFitInMemory(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	for name, value := range map[string]string{
		"MONGODB_URI": "mongodb://127.0.0.1:1", "SOURCE_DATABASE": "shop", "SOURCE_COLLECTION": "events",
		"SERVICEBUS_CONNECTION_STRING": "Endpoint=sb://127.0.0.1;SharedAccessKeyName=n;SharedAccessKey=k;UseDevelopmentEmulator=true",
		"SERVICEBUS_TOPIC":             testserver.Topic, "ADMIN_ADDR": "127.0.0.1:0",
	} {
		t.Setenv(name, value)
	}
	ended, end := context.WithCancel(t.Context())
	end() // who does not refuse ends at once
	for _, tt := range []struct{ partitions, bytes, want string }{
		{"1", "0", ""},
		{"11", "0", ""},
		{"12", "0", "PARTITIONS: is 12, and 11 fit in the memory limit of 300 MiB"},
		{"1", "89128960", ""},
		{"1", "90177536", "MAX_IN_FLIGHT_BYTES: is 90177536, and 89478485 fit in the memory limit of 300 MiB"},
		{"2", "89128960", "MAX_IN_FLIGHT_BYTES: is 89128960, and 82021944 fit"},
		{"11", "11534336", ""},
	} {
		t.Setenv("PARTITIONS", tt.partitions)
		t.Setenv("MAX_IN_FLIGHT_BYTES", tt.bytes)
		debug.SetMemoryLimit(300 << 20) // who runs sets his own
		var stdout, stderr bytes.Buffer
		code := command.Program(version, config.Load).Run(ended, nil, &stdout, &stderr)
		if (code == cli.Misused) != (tt.want != "") || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("PARTITIONS=%s MAX_IN_FLIGHT_BYTES=%s ends with %d and %q, want %q", tt.partitions, tt.bytes, code, &stderr, tt.want)
		}
	}
	t.Setenv("MAX_IN_FLIGHT_BYTES", "0")
	t.Setenv("PARTITIONS", "12")
	debug.SetMemoryLimit(300 << 20)
	var stdout, stderr bytes.Buffer
	if code := command.Program(version, config.Load).Run(t.Context(), []string{"health"}, &stdout, &stderr); code == cli.Misused {
		t.Errorf("a command is refused, too: %q", &stderr)
	}
}

func TestCommand_ExitStatusTellsARefusalFromAWrongArgument(t *testing.T) {
	servers := testserver.Get(t)
	for name, value := range map[string]string{
		"MONGODB_URI": servers.MongoURI, "SOURCE_DATABASE": "shop", "SOURCE_COLLECTION": "events",
		"STATE_DATABASE":               testserver.Name(t),
		"SERVICEBUS_CONNECTION_STRING": servers.ServiceBus, "SERVICEBUS_TOPIC": testserver.Topic,
	} {
		t.Setenv(name, value)
	}
	for _, tt := range []struct {
		args []string
		code int
	}{
		{[]string{"checkpoint", "reset"}, cli.Misused},
		{[]string{"checkpoint", "accept", "now", "--why", "x"}, cli.Misused},
		{[]string{"repartition", "--what"}, cli.Misused},
		{[]string{"checkpoint", "reset", "--why", "x"}, cli.Failed}, // nothing is known of the stream
		{[]string{"repartition"}, cli.Failed},
		{[]string{"checkpoint", "reset", "--why", "x", "--new", "--dry-run", "--json"}, cli.Done},
		{[]string{"checkpoint", "reset", "--why", "x", "--dry-run"}, cli.Failed}, // still nothing
		{[]string{"checkpoint", "reset", "--why", "x", "--new"}, cli.Done},
		{[]string{"checkpoint", "reset", "--why", "x"}, cli.Done},
		{[]string{"repartition", "--json"}, cli.Done}, // nothing to do
	} {
		var stdout, stderr bytes.Buffer
		if code := command.Program(version, config.Load).Run(t.Context(), tt.args, &stdout, &stderr); code != tt.code {
			t.Errorf("%q ends with %d, want %d: %s%s", tt.args, code, tt.code, &stdout, &stderr)
		}
	}
}
