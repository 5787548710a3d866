package accept

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/e2e/internal/harness/cluster"
)

// step is one thing that is tried: a command in a directory of the repository.
type step struct {
	name, dir string
	command   []string
}

// steps are what is tried, in this order. bin is a directory of built binaries.
func steps(bin string) []step {
	test := func(packages ...string) []string {
		return append([]string{"go", "test", "-v", "-count=1", "-timeout", "10m"}, packages...)
	}
	return []step{
		{
			"the publisher's adapters to MongoDB", "services/publisher",
			test("./internal/changestream", "./internal/backfill", "./internal/mongostate", "./internal/leadership"),
		},
		{"the publisher's adapter to Service Bus", "services/publisher", test("./internal/servicebus")},
		{"the projector's read model", "services/projector", test("./internal/readmodel")},
		{"the demo, with faults of the services", ".", []string{
			"go", "run", "./services/e2e/cmd/demo", "--bin", bin, "--rate", "300", "--duration", "20s", "--aggregates", "500",
		}},
		{"a short campaign of faults of the services, with settings drawn by its seed", ".", []string{
			"go", "run", "./services/e2e/cmd/chaos", "--bin", bin, "--rate", "200", "--duration", "60s", "--settle", "90s",
		}},
	}
}

// notRun are what cannot be tried on servers of one's own, with the reason.
var notRun = []string{
	"the projector's adapters to Service Bus: each of their tests needs a topic of its own, which only a sandbox is configured with",
	"what is left in the subscription, messages of other sources, and times to live: only the sandbox tells, or is the relay's alone",
	"faults of the servers and of connections, operators' mistakes and crash points: they kill, stop and disturb the servers",
	"projectors of the last release, wrong clocks, and projections in Go: they need programs other than those that ship",
}

// result is what came of a step.
type result struct {
	step
	took   time.Duration
	output string
	err    error
}

// longest bounds all steps together. What is not done then has failed.
const longest = 15 * time.Minute

// Run tries everything, and returns the report's path and whether all passed. The error
// is why it could not be tried.
func Run(ctx context.Context, cfg Config, out io.Writer) (report string, passed bool, err error) {
	defer func() {
		if err != nil {
			err = errors.New(cfg.redacted(err.Error())) // it may say a connection string
		}
	}()
	place, err := cluster.Prepare(ctx, "accept", cluster.Wish{})
	if err != nil {
		return "", false, err
	}
	c := cluster.New(cluster.Config{Binaries: place.Binaries, Dir: place.Dir})
	defer c.Close()
	if err := c.StartSandbox(ctx); err != nil {
		return "", false, err
	}
	endpoints := cfg.over(c.Endpoints())
	client, err := mongo.Connect(options.Client().ApplyURI(endpoints.MongoURI))
	if err != nil {
		return "", false, fmt.Errorf("connect to MongoDB: %w", err)
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	before, err := client.ListDatabaseNames(ctx, bson.D{})
	if err != nil {
		return "", false, fmt.Errorf("list MongoDB's databases: %w", err)
	}
	var info struct{ Version string }
	if err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Decode(&info); err != nil {
		info.Version = "not told: " + err.Error()
	}
	var results []result
	bounded, cancel := context.WithTimeoutCause(ctx, longest, fmt.Errorf("the quarter of an hour is over"))
	defer cancel()
	for _, s := range steps(filepath.Dir(place.Binaries.Publisher)) {
		fmt.Fprintf(out, "%s …\n", s.name)
		results = append(results, s.run(bounded, place.Root, environment(endpoints, place.Binaries)))
	}
	left := clean(ctx, client, before)
	text, passed := cfg.report(info.Version, commit(ctx, place.Root), results, left)
	report = filepath.Join(place.Dir, "report.txt")
	fmt.Fprint(out, text)
	return report, passed, os.WriteFile(report, []byte(text), 0o644)
}

// environment is ours, with the servers to try.
func environment(e cluster.Endpoints, b cluster.Binaries) []string {
	return append(os.Environ(),
		envMongo+"="+e.MongoURI, envServiceBus+"="+e.ServiceBus,
		"DEMO_MONGODB_URI="+e.MongoURI, "DEMO_SERVICEBUS_CONNECTION_STRING="+e.ServiceBus,
		"CHAOS_MONGODB_URI="+e.MongoURI, "CHAOS_SERVICEBUS_CONNECTION_STRING="+e.ServiceBus,
		"SANDBOX_BIN="+b.Sandbox)
}

// run does the step. Once it is over, also with ctx, nothing that it has started uses the
// servers any more.
func (s step) run(ctx context.Context, root string, env []string) result {
	began := time.Now()
	cmd := cluster.Group(ctx, s.command[0], s.command[1:]...)
	cmd.WaitDelay = 10 * time.Second // what has left the group may hold its output open
	cmd.Dir, cmd.Env = filepath.Join(root, s.dir), env
	output, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return result{step: s, took: time.Since(began), output: string(output), err: err}
}

func commit(ctx context.Context, root string) string {
	cmd := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "not known"
	}
	return strings.TrimSpace(string(out))
}
