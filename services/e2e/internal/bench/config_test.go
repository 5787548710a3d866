package bench

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
		says []string // none: no error
	}{
		{name: "the defaults are fine"},
		{name: "every flag can be set", args: []string{"--events", "10", "--aggregates", "5", "--publishers", "2", "--projectors", "2", "--rate", "100", "--backlog", "7", "--seed", "9"}},
		{name: "every problem is told", args: []string{"--events", "0", "--backlog", "0", "--rate", "-1", "--timeout", "0s", "x"}, says: []string{"--events is 0", "--backlog is 0", "--rate is -1", "--timeout is 0s", `no argument "x"`}},
		{name: "an unknown flag", args: []string{"--quick"}, says: []string{"quick"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(tt.args, io.Discard)
			if (err == nil) != (len(tt.says) == 0) {
				t.Fatalf("error: got %v, want one that says %q", err, tt.says)
			}
			for _, want := range tt.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error: got %q, want it to say %q", err, want)
				}
			}
		})
	}
	if _, err := Parse([]string{"-h"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("help: got %v, want %v", err, flag.ErrHelp)
	}
}

func TestTheSandboxsConfigurationIsJSON(t *testing.T) {
	t.Parallel()
	if !json.Valid([]byte(entities)) {
		t.Errorf("configuration: got %s, want JSON", entities)
	}
}
