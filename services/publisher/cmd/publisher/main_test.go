package main

import (
	"bytes"
	"strings"
	"testing"

	"changerelay/services/publisher/internal/testserver"
)

func TestTheCommandLine(t *testing.T) {
	t.Setenv("MONGODB_URI", "")
	t.Setenv("SOURCE_DATABASE", "")
	for name, tt := range map[string]struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"help lists every setting":        {[]string{"--help"}, stopped, "LEASE_RENEW_DEADLINE", ""},
		"help names the commands":         {[]string{"help"}, stopped, "publisher parked list", ""},
		"version":                         {[]string{"--version"}, stopped, "publisher ", ""},
		"no configuration":                {nil, misconfigured, "", "SOURCE_DATABASE: is required"},
		"a command without configuration": {[]string{"parked", "list"}, misconfigured, "", "MONGODB_URI: is required"},
		"health without configuration":    {[]string{"health"}, misconfigured, "", "MONGODB_URI: is required"},
		"unknown arguments":               {[]string{"parked", "eat"}, misconfigured, "", `unknown arguments ["parked" "eat"]`},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), tt.args, &stdout, &stderr)
			if code != tt.code || !strings.Contains(stdout.String(), tt.stdout) || !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("run = %d with %q and %q, want %d with %q and %q", code, &stdout, &stderr, tt.code, tt.stdout, tt.stderr)
			}
		})
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
		{[]string{"checkpoint", "reset"}, misconfigured},
		{[]string{"checkpoint", "accept", "now", "--why", "x"}, misconfigured},
		{[]string{"repartition", "--what"}, misconfigured},
		{[]string{"checkpoint", "reset", "--why", "x"}, failed}, // nothing is known of the stream
		{[]string{"repartition"}, failed},
		{[]string{"checkpoint", "reset", "--why", "x", "--new", "--dry-run", "--json"}, stopped},
		{[]string{"checkpoint", "reset", "--why", "x", "--dry-run"}, failed}, // still nothing
		{[]string{"checkpoint", "reset", "--why", "x", "--new"}, stopped},
		{[]string{"checkpoint", "reset", "--why", "x"}, stopped},
		{[]string{"repartition", "--json"}, stopped}, // nothing to do
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), tt.args, &stdout, &stderr); code != tt.code {
			t.Errorf("%q ends with %d, want %d: %s%s", tt.args, code, tt.code, &stdout, &stderr)
		}
	}
}
