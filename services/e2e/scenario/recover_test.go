package scenario

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/cluster/clustertest"
	"changerelay/services/e2e/internal/harness/orders"
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
		if f := v.Violation(name); f.Count > 0 {
			t.Errorf("%s: got %d, want 0: %v", name, f.Count, f.Samples)
		}
	}
}

// TestRecover_WhatWasReplayedOrSentAgainIntoTheNamespace has a change from before the time
// replayed, and everything sent again, into the namespace that is lost.
func TestRecover_WhatWasReplayedOrSentAgainIntoTheNamespace(t *testing.T) {
	t.Parallel()
	r := start(t, func(cfg *cluster.Config) { cfg.Canaries = false })
	names := r.Names()
	publisher := func(servers cluster.Endpoints, args ...string) string {
		t.Helper()
		status, output := execute(t, binaries.Publisher, []string{
			"MONGODB_URI=" + servers.MongoURI, "SOURCE_DATABASE=" + names.SourceDatabase, "SOURCE_COLLECTION=" + names.SourceCollection,
			"STATE_DATABASE=" + names.StateDatabase, "LEASE_NAME=" + names.LeaseName,
			"SERVICEBUS_CONNECTION_STRING=" + servers.ServiceBus, "SERVICEBUS_TOPIC=" + names.Topic, "FIELD_TYPE=kind",
		}, args...)
		if status != 0 {
			t.Fatalf("%q: exit status %d:\n%s", args, status, output)
		}
		return output
	}
	event := bson.D{{Key: "aggregateId", Value: "late"}, {Key: "version", Value: 1}, {Key: "kind", Value: orders.Placed}, {Key: "data", Value: bson.D{{Key: "customer", Value: "c"}, {Key: "channel", Value: "web"}}}}
	events := r.witness.Client.Database(names.SourceDatabase).Collection(names.SourceCollection)
	if _, err := events.InsertOne(within(t), event); err != nil {
		t.Fatal(err)
	}
	await(t, "the change to be parked", func(ctx context.Context) (bool, string) {
		n, err := r.witness.State().Collection("parked_changes").CountDocuments(ctx, bson.D{})
		return err == nil && n == 1, fmt.Sprint(n, err)
	})
	written := time.Now()
	await(t, "a later second", func(context.Context) (bool, string) { return time.Since(written) > 2*time.Second, "" })
	last := time.Now().UTC().Format(time.RFC3339)
	stopAll(t, r.Projectors)
	publisher(r.Endpoints(), "resend", "--all", "--group", "it's mine", "--why", "test")
	await(t, "the resend to end", func(context.Context) (bool, string) {
		status := publisher(r.Endpoints(), "resend", "status", "--json")
		return strings.Contains(status, `"done"`), status
	})
	publisher(r.Endpoints(), "parked", "replay", "--all")
	stopAll(t, r.Publishers)

	servers := r.Endpoints()
	servers.ServiceBus = clustertest.Sandbox(t).ServiceBus
	out, err := script(t, "recover-namespace", servers, last)
	if err != nil {
		t.Fatalf("the script: %v\n%s", err, out)
	}
	if want := `publisher resend --all --group 'it'\\''s mine' --why TEXT`; !strings.Contains(strings.ReplaceAll(out, `\u0026`, "&"), want) {
		t.Errorf("the script says\n%s, want how to send again what was", out)
	}
	again := cluster.New(configure(t, func(cfg *cluster.Config) { cfg.Canaries, cfg.Backend = false, &servers }))
	closeAtEnd(t, again)
	if err := again.LayOut(); err != nil {
		t.Fatal(err)
	}
	if err := again.StartServices(); err != nil {
		t.Fatal(err)
	}
	publisher(servers, "parked", "replay", "--all")
	await(t, "what was replayed to be in the read model", func(ctx context.Context) (bool, string) {
		n, err := r.witness.ReadModel().Collection("orders").CountDocuments(ctx, bson.D{{Key: "_id", Value: "late"}})
		return err == nil && n == 1, fmt.Sprint(n, err)
	})
}

// TestRecover_WhereOnePartitionIsHalted has publishers stopped of which one waited for an
// operator, so that a command would be about that one alone.
func TestRecover_WhereOnePartitionIsHalted(t *testing.T) {
	t.Parallel()
	split := map[string]string{"PARTITIONS": "2"}
	r := start(t, func(cfg *cluster.Config) { cfg.Canaries, cfg.PublisherEnv = false, split })
	r.write(t, 100)
	if err := r.witness.AwaitDrain(within(t)); err != nil {
		t.Fatal(err)
	}
	last := time.Now().Add(-2 * time.Second).UTC().Format(time.RFC3339)
	stopAll(t, r.Projectors)
	stopAll(t, r.Publishers)
	halted, err := r.witness.State().Collection("streams").UpdateOne(within(t),
		bson.D{{Key: "_id", Value: bson.D{{Key: "$regex", Value: "-1of2$"}}}}, bson.D{{Key: "$set", Value: bson.D{{Key: "halt", Value: "too many changes are parked"}}}})
	if err != nil || halted.ModifiedCount != 1 {
		t.Fatalf("halted %+v, %v, want one partition", halted, err)
	}
	const other = "changes-2" // beside the topic that is gone
	client, sessions := managing(t, r.Endpoints()), true
	if _, err := client.CreateTopic(within(t), other, nil); err != nil {
		t.Fatal(err)
	}
	_, err = client.CreateSubscription(within(t), other, r.Names().Subscription, &admin.CreateSubscriptionOptions{
		Properties: &admin.SubscriptionProperties{RequiresSession: &sessions},
	})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := script(t, "recover-namespace", r.Endpoints(), last, "PARTITIONS=2", "SERVICEBUS_TOPIC="+other); err != nil {
		t.Fatalf("the script: %v\n%s", err, out)
	}
}

func stopAll(t *testing.T, nodes []*cluster.Node) {
	t.Helper()
	if errs := cluster.Stop(within(t), nodes...); slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		t.Fatal(errs)
	}
}

// script runs one of the repository's scripts in the environment of both services, and more.
func script(t *testing.T, name string, servers cluster.Endpoints, argument string, more ...string) (string, error) {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	names := cluster.DefaultNames()
	cmd := exec.CommandContext(within(t), filepath.Join(root, "scripts", name), argument)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "BIN=" + filepath.Dir(binaries.Publisher),
		"MONGODB_URI=" + servers.MongoURI, "SOURCE_DATABASE=" + names.SourceDatabase, "SOURCE_COLLECTION=" + names.SourceCollection,
		"STATE_DATABASE=" + names.StateDatabase, "LEASE_NAME=" + names.LeaseName,
		"READMODEL_MONGODB_URI=" + servers.MongoURI, "READMODEL_DATABASE=" + names.ReadModelDatabase,
		"PROJECTIONS=" + filepath.Join(root, "services", "e2e", "orders.yaml"),
		"SERVICEBUS_CONNECTION_STRING=" + servers.ServiceBus, "SERVICEBUS_TOPIC=" + names.Topic, "SERVICEBUS_SUBSCRIPTION=" + names.Subscription,
	}
	cmd.Env = append(cmd.Env, more...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
