package scenario

import (
	"os"
	"path/filepath"
	"testing"

	"changerelay/services/e2e/internal/harness/cluster"
)

// whole is a namespace whose topic is not partitioned.
const whole = `{"UserConfig": {"Namespaces": [{"Name": "sbemulatorns", "Topics": [{
  "Name": "changes",
  "Properties": {"RequiresDuplicateDetection": true, "DuplicateDetectionHistoryTimeWindow": "PT10M"},
  "Subscriptions": [
    {"Name": "projector", "Properties": {"RequiresSession": true}},
    {"Name": "observer", "Properties": {"RequiresSession": false}}
  ]
}]}], "Logging": {"Type": "File"}}}`

func TestMixed_MixedBatchesKeepEveryOrder(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "Config.json")
	if err := os.WriteFile(config, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, func(c *cluster.Config) {
		c.PublisherEnv = map[string]string{"BATCHING": "mixed", "SENDERS": "4"}
		c.SandboxArgs = cluster.SandboxAnywhere("--config", config)
	})
	stop := r.writing(t, rate)
	old, term := r.sendingLeader(t, 0)
	r.awaitSends(t, term, 500)
	old.Kill()
	_, next := r.sendingLeader(t, term)
	r.awaitSends(t, next, 500)
	stop()
	r.judge(t)
}
