package scenario

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/cluster/clustertest"
)

// TestRecover_ANamespaceThatIsGoneWithItsMessages loses a namespace with messages that
// no projector has applied, and runs the script that goes on in another one.
func TestRecover_ANamespaceThatIsGoneWithItsMessages(t *testing.T) {
	t.Parallel()
	r := start(t, func(cfg *cluster.Config) { cfg.Canaries = false })
	r.write(t, 300)
	if err := r.witness.AwaitDrain(within(t)); err != nil {
		t.Fatal(err)
	}
	last := time.Now().Add(-2 * time.Second).UTC().Format(time.RFC3339)
	stopAll(t, r.Projectors)
	r.write(t, 300)
	await(t, "the messages that will be lost", func(context.Context) (bool, string) {
		return r.witness.Observer.Count() >= 600, fmt.Sprint(r.witness.Observer.Count())
	})
	stopAll(t, r.Publishers)

	servers := r.Endpoints()
	servers.ServiceBus = clustertest.Sandbox(t).ServiceBus
	out, err := script(t, "recover-namespace", servers, last)
	if err != nil {
		t.Fatalf("the script: %v\n%s", err, out)
	}
	again := cluster.New(configure(t, func(cfg *cluster.Config) { cfg.Canaries, cfg.Backend = false, &servers }))
	closeAtEnd(t, again)
	if err := again.LayOut(); err != nil {
		t.Fatal(err)
	}
	if err := again.StartServices(); err != nil {
		t.Fatal(err)
	}
	await(t, "all events in the read model", func(context.Context) (bool, string) {
		written, applied := r.witness.Ledger.Counts()
		return applied == written, fmt.Sprintf("%d of %d", applied, written)
	})
	v, err := r.witness.Judge(within(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		witness.LostBeforeReadModel, witness.AppliedTwice, witness.WrongDocuments, witness.Misplaced, witness.DocumentsWentBack, witness.MarkedHalted,
	} {
		if f := v.Fault(name); f.Count > 0 {
			t.Errorf("%s: got %d, want 0: %v", name, f.Count, f.Samples)
		}
	}
}

func stopAll(t *testing.T, nodes []*cluster.Node) {
	t.Helper()
	if errs := cluster.Stop(within(t), nodes...); slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		t.Fatal(errs)
	}
}

// script runs one of the repository's scripts in the environment of both services.
func script(t *testing.T, name string, servers cluster.Endpoints, args ...string) (string, error) {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	names := cluster.DefaultNames()
	cmd := exec.CommandContext(within(t), filepath.Join(root, "scripts", name), args...)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "BIN=" + filepath.Dir(binaries.Publisher),
		"MONGODB_URI=" + servers.MongoURI, "SOURCE_DATABASE=" + names.SourceDatabase, "SOURCE_COLLECTION=" + names.SourceCollection,
		"STATE_DATABASE=" + names.StateDatabase, "LEASE_NAME=" + names.LeaseName,
		"READMODEL_MONGODB_URI=" + servers.MongoURI, "READMODEL_DATABASE=" + names.ReadModelDatabase,
		"PROJECTIONS=" + filepath.Join(root, "services", "e2e", "orders.yaml"),
		"SERVICEBUS_CONNECTION_STRING=" + servers.ServiceBus, "SERVICEBUS_TOPIC=" + names.Topic, "SERVICEBUS_SUBSCRIPTION=" + names.Subscription,
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
