package scenario

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"changerelay/services/e2e/internal/campaign/modes"
	"changerelay/services/e2e/internal/harness/cluster"
)

func TestConfiguration_ABadConfigurationNamesEveryProblemAtOnce(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		binary string
		env    []string
		says   []string
	}{
		{
			name: "a publisher with nothing set names all that it needs", binary: binaries.Publisher,
			says: []string{"MONGODB_URI", "SOURCE_COLLECTION", "SERVICEBUS_TOPIC", "SERVICEBUS_CONNECTION_STRING"},
		},
		{
			name: "a publisher with several bad values names each", binary: binaries.Publisher,
			env: []string{
				"MONGODB_URI=mongodb://127.0.0.1:1", "SERVICEBUS_CONNECTION_STRING=Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=n;SharedAccessKey=k;UseDevelopmentEmulator=true;",
				"SERVICEBUS_TOPIC=changes", "SOURCE_DATABASE=shop", "SOURCE_COLLECTION=events",
				"LEASE_TTL=soon", "MAX_IN_FLIGHT=-5", "ON_UNMAPPABLE=shrug",
			},
			says: []string{"LEASE_TTL", "MAX_IN_FLIGHT", "ON_UNMAPPABLE"},
		},
		{
			name: "a publisher whose lease would end before it is renewed says so", binary: binaries.Publisher,
			env: []string{
				"MONGODB_URI=mongodb://127.0.0.1:1", "SERVICEBUS_CONNECTION_STRING=Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=n;SharedAccessKey=k;UseDevelopmentEmulator=true;",
				"SERVICEBUS_TOPIC=changes", "SOURCE_DATABASE=shop", "SOURCE_COLLECTION=events",
				"LEASE_TTL=5s", "LEASE_HEARTBEAT=5s", "LEASE_RENEW_DEADLINE=10s",
			},
			says: []string{"LEASE_RENEW_DEADLINE"},
		},
		{
			name: "a projector with nothing set names all that it needs", binary: binaries.Projector,
			says: []string{"READMODEL_MONGODB_URI", "READMODEL_DATABASE", "SERVICEBUS_TOPIC", "SERVICEBUS_SUBSCRIPTION", "SERVICEBUS_CONNECTION_STRING"},
		},
		{
			name: "a projector with several bad values names each", binary: binaries.Projector,
			env: []string{
				"READMODEL_MONGODB_URI=mongodb://127.0.0.1:1", "SERVICEBUS_CONNECTION_STRING=Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=n;SharedAccessKey=k;UseDevelopmentEmulator=true;",
				"SERVICEBUS_TOPIC=changes", "SERVICEBUS_SUBSCRIPTION=projector", "READMODEL_DATABASE=shop_read",
				"MAX_SESSIONS=many", "BATCH_SIZE=0", "PROJECTIONS=/nowhere/projections.yaml",
			},
			says: []string{"MAX_SESSIONS", "BATCH_SIZE", "/nowhere/projections.yaml"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			status, output := execute(t, tt.binary, tt.env)
			if status != 2 {
				t.Errorf("exit status: got %d, want 2", status)
			}
			for _, want := range tt.says {
				if !strings.Contains(output, want) {
					t.Errorf("output: got\n%s\nwant it to name %s", output, want)
				}
			}
		})
	}
}

func TestConfiguration_SecretsStayOutOfWhatABadConfigurationSays(t *testing.T) {
	t.Parallel()
	const secret = "hunter2hunter2"
	for _, binary := range []string{binaries.Publisher, binaries.Projector} {
		_, output := execute(t, binary, []string{
			"MONGODB_URI=mongodb://user:" + secret + "@%zz/", "READMODEL_MONGODB_URI=mongodb://user:" + secret + "@%zz/",
			"SERVICEBUS_CONNECTION_STRING=Endpoint=sb://x;SharedAccessKeyName;SharedAccessKey=" + secret,
		})
		if strings.Contains(output, secret) {
			t.Errorf("output of %s: it tells the secret:\n%s", binary, output)
		}
	}
}

// What campaigns draw is what the services have: an environment may hold anything, and a
// name that is no setting of theirs does nothing.
func TestConfiguration_WhatCampaignsDrawAreSettings(t *testing.T) {
	t.Parallel()
	drawn := map[string]map[string]bool{binaries.Publisher: {}, binaries.Projector: {}}
	for seed := range uint64(300) {
		for _, m := range []modes.Mode{modes.Draw(seed), modes.DrawForOperators(seed)} {
			for binary, settings := range map[string]map[string]string{binaries.Publisher: m.Publisher, binaries.Projector: m.Projector} {
				for name := range settings {
					drawn[binary][name] = true
				}
			}
		}
	}
	for binary, names := range drawn {
		help, err := cluster.Help(t.Context(), binary)
		if err != nil {
			t.Fatal(err)
		}
		if len(names) == 0 {
			t.Errorf("%s: nothing is drawn", binary)
		}
		for name := range names {
			if !strings.Contains(help, "\n"+name+" ") {
				t.Errorf("%s has no setting %s", binary, name)
			}
		}
	}
}

// execute runs a program that should end by itself, and returns its exit status
// and what it wrote.
func execute(t *testing.T, binary string, env []string, args ...string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(within(t), binary, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %s: %v", binary, err)
	}
	return cmd.ProcessState.ExitCode(), output.String()
}
