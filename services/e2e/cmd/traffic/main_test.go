package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestTraffic_TheCommandLine(t *testing.T) {
	t.Parallel()
	whole := map[string]string{"MONGODB_URI": "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=50", "SERVICEBUS_CONNECTION_STRING": "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true;"}
	for name, tt := range map[string]struct {
		args           []string
		set            map[string]string
		code           int
		stdout, stderr []string
	}{
		"version":                         {[]string{"--version"}, nil, 0, []string{"traffic devel"}, nil},
		"help":                            {[]string{"--help"}, nil, 0, []string{"-timeout"}, nil},
		"help of a mode":                  {[]string{"load", "--help"}, nil, 0, []string{"-rate"}, nil},
		"everything that is wrong":        {[]string{"verify", "--rate", "0", "--timeout", "0s", "x"}, nil, 2, nil, []string{"MONGODB_URI is required", "SERVICEBUS_CONNECTION_STRING is required", "--rate is 0", "--timeout is 0s", `no argument "x"`}},
		"no mode":                         {nil, whole, 2, nil, []string{"neither load nor verify"}},
		"a system that is not there":      {[]string{"verify"}, whole, 1, nil, []string{"traffic: "}},
		"a load does not need the broker": {[]string{"load", "--rate", "0"}, map[string]string{"MONGODB_URI": "mongodb://127.0.0.1:1"}, 2, nil, []string{"--rate is 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), tt.args, func(name string) string { return tt.set[name] }, &stdout, &stderr)
			if code != tt.code {
				t.Errorf("exit: got %d, want %d", code, tt.code)
			}
			for _, want := range tt.stdout {
				if !strings.Contains(stdout.String(), want) {
					t.Errorf("standard output: got %q, want %q in it", &stdout, want)
				}
			}
			for _, want := range tt.stderr {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("standard error: got %q, want %q in it", &stderr, want)
				}
			}
		})
	}
}
