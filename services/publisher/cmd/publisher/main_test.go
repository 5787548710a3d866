package main

import (
	"bytes"
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
