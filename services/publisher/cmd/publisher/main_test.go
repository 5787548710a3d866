package main

import (
	"bytes"
	"strings"
	"testing"
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
