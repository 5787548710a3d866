package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/readmodel"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/source"
)

// rebuilding is a namespace with a topic to rebuild over, and a subscription
// for the new version to read afterwards.
const rebuilding = `{"UserConfig": {"Namespaces": [{"Name": "sbemulatorns", "Topics": [
  {"Name": "changes", "Properties": {"RequiresDuplicateDetection": true, "DuplicateDetectionHistoryTimeWindow": "PT10M"}, "Subscriptions": [
    {"Name": "projector", "Properties": {"RequiresSession": true}},
    {"Name": "projector-v2", "Properties": {"RequiresSession": true}},
    {"Name": "observer", "Properties": {"RequiresSession": false}}]},
  {"Name": "rebuild", "Properties": {"RequiresDuplicateDetection": true, "DuplicateDetectionHistoryTimeWindow": "PT10M"}, "Subscriptions": [
    {"Name": "projector", "Properties": {"RequiresSession": true}}]}
]}], "Logging": {"Type": "File"}}}`

// steadyLease outlasts the pauses of a loaded machine: nobody fails over here.
const steadyLease = 15 * time.Second

// openFirst has the witness judge version 1.
func openFirst(ctx context.Context, e cluster.Endpoints, n cluster.Names, _ witness.Projection) (*witness.Witness, error) {
	return witness.Open(ctx, e, n, witness.Projection{Collection: "orders_v1", Counts: true})
}

// versionFile declares a version of the demo's read model. From version 2 on an
// order that was placed is called open.
func versionFile(t *testing.T, number int) string {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "services", "e2e", "orders.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	version := strings.Replace(string(text), "collection: orders\n", fmt.Sprintf("collection: orders\n    version: %d\n", number), 1)
	if number > 1 {
		version = strings.Replace(version, `'"placed"'`, `'"open"'`, 1)
	}
	file := filepath.Join(t.TempDir(), "orders.yaml")
	if err := os.WriteFile(file, []byte(version), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// second lays out services that build version 2, on the same servers.
func (r *relay) second(t *testing.T, publishers int, topic, subscription string) *cluster.Cluster {
	t.Helper()
	names, endpoints := r.Names(), r.Endpoints()
	names.Topic, names.Subscription, names.LeaseName = topic, subscription, "rebuild"
	c := cluster.New(configure(t, func(cfg *cluster.Config) {
		cfg.Backend, cfg.Names, cfg.Publishers, cfg.Projectors = &endpoints, names, publishers, 1
		cfg.Projections, cfg.Lease = versionFile(t, 2), cluster.LeaseOf(steadyLease)
		cfg.PublisherEnv = map[string]string{"STREAM_NAME": "rebuild", "START_AT": "snapshot"}
		cfg.ProjectorEnv = map[string]string{"READMODEL_GROUP": "v2"}
	}))
	if err := c.LayOut(); err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, c)
	return c
}

// differences compares what readers see with version 2 computed from the source.
func (r *relay) differences(ctx context.Context, t *testing.T) validate.Findings {
	t.Helper()
	model := orders.Model{}
	err := source.Each(ctx, r.witness.Client, r.Names().SourceDatabase, r.Names().SourceCollection, func(e source.Stored) error {
		model.Apply(e.Event)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]map[string]any, len(model))
	for id, doc := range model {
		orders.SortSets(doc)
		if doc["status"] == "placed" {
			doc["status"] = "open"
		}
		want[id] = doc
	}
	got, err := readmodel.Read(ctx, r.witness.Client, r.Names().ReadModelDatabase, "orders")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range got.Documents {
		orders.SortSets(doc)
	}
	return validate.Differences(want, got.Documents)
}

func (r *relay) awaitSecond(t *testing.T, when string) {
	t.Helper()
	await(t, "readers to see version 2 of every order "+when, func(ctx context.Context) (bool, string) {
		f := r.differences(ctx, t)
		return f.Count == 0, fmt.Sprint(f.Samples)
	})
}

// Version 2 is built from the start over a topic of its own while version 1 is
// live and events are written; readers are switched by one command; then it is
// fed by the topic of all.
func TestVersions_ANewVersionIsBuiltBesideTheLiveOneAndSwitchedTo(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "Config.json")
	if err := os.WriteFile(config, []byte(rebuilding), 0o600); err != nil {
		t.Fatal(err)
	}
	c := cluster.New(configure(t, func(c *cluster.Config) {
		c.Projections, c.Lease = versionFile(t, 1), cluster.LeaseOf(steadyLease)
		c.SandboxArgs = cluster.SandboxAnywhere("--config", config)
	}))
	closeAtEnd(t, c)
	if err := c.StartServers(within(t)); err != nil {
		t.Fatal(err)
	}
	r := watchedBy(t, c, openFirst)
	command := func(n *cluster.Node, args ...string) {
		t.Helper()
		if _, err := n.Command(within(t), args...); err != nil {
			t.Fatal(err)
		}
	}
	command(c.Projectors[0], "setup")
	if err := c.StartServices(); err != nil {
		t.Fatal(err)
	}
	r.awaitWork(t)
	stop := r.writing(t, rate)
	await(t, "events to be applied", r.appliedMore(500))

	rebuild := r.second(t, 1, "rebuild", "projector")
	operator := rebuild.Projectors[0]
	command(operator, "setup")
	toSecond := []string{"switch", "orders", "--to", "2", "--wait", "20s"}
	if output, err := operator.Command(within(t), "switch", "orders", "--to", "2", "--wait", "1s"); err == nil || !strings.Contains(output, "has started") {
		t.Errorf("a switch before anything is built: got %s and %v, want it refused, since no projector of version 2 has started", output, err)
	}
	if err := rebuild.StartServices(); err != nil {
		t.Fatal(err)
	}
	await(t, "version 2 to have caught up", func(ctx context.Context) (bool, string) {
		_, err := operator.Command(ctx, toSecond...)
		return err == nil, fmt.Sprint(err)
	})
	await(t, "events to be applied after the switch", r.appliedMore(200))
	stop()
	r.awaitSecond(t, "after the switch")

	// Nothing is left on the rebuild's way, so what feeds the others may feed it.
	for _, n := range []*cluster.Node{rebuild.Publishers[0], operator} {
		if errs := cluster.Stop(within(t), n); errs != nil {
			t.Fatal(errs)
		}
	}
	// Its stream has come to its end: what is written from here on is not for it.
	if _, err := r.witness.State().Collection("resume_tokens").DeleteOne(within(t), bson.D{{Key: "_id", Value: "rebuild"}}); err != nil {
		t.Fatal(err)
	}
	joined := r.second(t, 0, r.Names().Topic, "projector-v2")
	command(joined.Projectors[0], "move", "--leave-messages") // what is left there projector-v2 has, too
	if err := joined.StartServices(); err != nil {
		t.Fatal(err)
	}
	r.write(t, 300)
	r.judge(t)
	r.awaitSecond(t, "fed by the topic of all")
}
