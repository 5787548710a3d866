package speed

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/cluster"
	"changerelay/services/e2e/internal/load"
	"changerelay/services/e2e/internal/orders"
	"changerelay/services/e2e/internal/source"
)

// Config says what a run does.
type Config struct {
	Events     int
	Aggregates int
	// Latency is how much farther the broker is in the second half.
	Latency time.Duration
	// Plain is how long the plain loop runs each time.
	Plain   time.Duration
	Timeout time.Duration
}

// Parse reads the command line.
func Parse(args []string, usage io.Writer) (Config, error) {
	var c Config
	flags := flag.NewFlagSet("bench publisher", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.IntVar(&c.Events, "events", 200_000, "how many events go through")
	flags.IntVar(&c.Aggregates, "aggregates", 50_000, "how many orders they belong to")
	flags.DurationVar(&c.Latency, "latency", 5*time.Millisecond, "how much farther the broker is in the second half")
	flags.DurationVar(&c.Plain, "plain", 5*time.Second, "how long the plain loop runs each time")
	flags.DurationVar(&c.Timeout, "timeout", 15*time.Minute, "bounds the run after the build")
	if err := flags.Parse(args); err != nil {
		return Config{}, err
	}
	if flags.NArg() > 0 || c.Events < 1 || c.Aggregates < 1 {
		return Config{}, errors.New("bench publisher: --events and --aggregates are above 0, and nothing else is given")
	}
	return c, nil
}

// topics are the entities: one for each measurement, for a topic drops what
// another measurement has sent already. None is partitioned.
var topics = []string{"bare", "mixed", "session", "plain", "mixed-late", "session-late", "plain-late"}

// run is one run with its servers.
type run struct {
	config    Config
	dir       string
	binaries  cluster.Binaries
	endpoints cluster.Endpoints
	events    *mongo.Collection
	start     time.Time
	bodies    [][]byte
	// farther is the broker's connection string with the latency.
	farther string
}

// Figure is one measurement.
type Figure struct {
	Name      string
	PerSecond float64
}

// Run measures, and prints the figures and their ratios to out.
func Run(ctx context.Context, c Config, out io.Writer) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-publisher-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := &run{config: c, dir: dir}
	if r.binaries, err = cluster.Build(ctx, root, filepath.Join(root, ".run", "bin"), "bench"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	servers, err := r.serve(ctx)
	if err != nil {
		return err
	}
	defer servers.Close()
	client, err := mongo.Connect(options.Client().ApplyURI(r.endpoints.MongoURI))
	if err != nil {
		return err
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	names := cluster.DefaultNames()
	r.events = client.Database(names.SourceDatabase).Collection(names.SourceCollection)
	figures, err := r.measured(ctx)
	if err != nil {
		return err
	}
	return show(out, c, figures)
}

// measured measures with a second way to the broker beside the first.
func (r *run) measured(ctx context.Context) ([]Figure, error) {
	address, _, _ := strings.Cut(strings.TrimPrefix(r.endpoints.ServiceBus, "Endpoint=sb://"), ";")
	far, err := newLatency(address, r.config.Latency)
	if err != nil {
		return nil, err
	}
	r.farther = strings.Replace(r.endpoints.ServiceBus, address, far.listener.Addr().String(), 1)
	ctx, cancel := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return far.run(ctx) })
	figures, err := r.measure(ctx)
	cancel()
	return figures, errors.Join(err, group.Wait())
}

// serve starts the sandbox with a topic for each measurement.
func (r *run) serve(ctx context.Context) (*cluster.Cluster, error) {
	var entities []string
	for _, name := range topics {
		entities = append(entities, fmt.Sprintf(`{"Name": %q, "Properties": {"RequiresDuplicateDetection": true, "DuplicateDetectionHistoryTimeWindow": "PT10M"},
			"Subscriptions": [{"Name": "projector", "Properties": {"RequiresSession": true}}]}`, name))
	}
	config := filepath.Join(r.dir, "Config.json")
	text := `{"UserConfig": {"Namespaces": [{"Name": "sbemulatorns", "Topics": [` + strings.Join(entities, ",") + `]}], "Logging": {"Type": "Console"}}}`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	c := cluster.New(cluster.Config{Binaries: r.binaries, Dir: r.dir, SandboxArgs: []string{
		"--mongo", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--management", "127.0.0.1:0", "--http", "127.0.0.1:0", "--config", config,
	}})
	if err := c.StartServers(ctx); err != nil {
		c.Close()
		return nil, err
	}
	r.endpoints = c.Endpoints()
	return c, nil
}

// write fills the source.
func (r *run) write(ctx context.Context) error {
	r.start = time.Now().Add(-time.Second)
	l := load.Load{
		To:    source.NewWriter(r.events.Database().Client(), r.events.Database().Name(), r.events.Name()),
		Next:  load.Limited(r.config.Events, load.Generated(orders.NewGenerator(1, r.config.Aggregates))),
		Wrote: func([]orders.Event) {},
		Least: r.config.Timeout,
	}
	return l.Run(ctx, nil)
}

func (r *run) measure(ctx context.Context) ([]Figure, error) {
	if err := r.write(ctx); err != nil {
		return nil, err
	}
	drained, err := r.drain(ctx)
	if err != nil {
		return nil, err
	}
	const bareSenders = 32
	sent, err := r.send(ctx, "bare", bareSenders)
	if err != nil {
		return nil, err
	}
	figures := []Figure{
		{driverFigure, float64(r.config.Events) / drained.Seconds()},
		{sdkFigure, float64(r.config.Events) / sent.Seconds()},
	}
	for _, suffix := range []string{"", "-late"} {
		if suffix != "" {
			r.endpoints.ServiceBus = r.farther
		}
		for _, batching := range []string{"mixed", "session"} {
			rate, err := r.publish(ctx, batching+suffix, batching)
			if err != nil {
				return nil, err
			}
			figures = append(figures, Figure{"publisher, " + batching + " batches" + late(suffix), rate})
		}
		n, took, err := r.plain(ctx, "plain"+suffix, r.config.Plain)
		if err != nil {
			return nil, err
		}
		figures = append(figures, Figure{plainFigure + late(suffix), float64(n) / took.Seconds()})
	}
	return figures, nil
}

// Names of figures.
const (
	driverFigure = "bare driver: drain the change stream"
	sdkFigure    = "bare SDK: batches of 100, 32 senders"
	plainFigure  = "plain loop: send one, save, next"
)

func late(suffix string) string {
	if suffix == "" {
		return ""
	}
	return ", broker farther"
}

// senders are the publisher's SENDERS by how it batches: mixed batches fill up
// where few senders take them.
var senders = map[string]string{"session": "256", "mixed": "16"}

// publish runs a publisher over the whole backlog into a topic, and returns how
// many messages a second it sent between its first and its last.
func (r *run) publish(ctx context.Context, topic, batching string) (float64, error) {
	names := cluster.DefaultNames()
	names.Topic, names.StateDatabase = topic, "state_"+topic
	c := cluster.New(cluster.Config{
		Binaries: r.binaries, Dir: r.dir, Publishers: 1, Lease: cluster.LeaseOf(15 * time.Second), Names: names, Backend: &r.endpoints,
		PublisherEnv: map[string]string{"BATCHING": batching, "SENDERS": senders[batching], "START_AT": r.start.UTC().Format(time.RFC3339)},
	})
	if err := c.LayOut(); err != nil {
		return 0, err
	}
	defer c.Close()
	if err := c.StartServices(); err != nil {
		return 0, err
	}
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	var began time.Time
	var first int64
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return 0, fmt.Errorf("publisher to topic %q: %w\n%s", topic, context.Cause(ctx), c.Publishers[0].Log())
		}
		s, err := c.Publishers[0].PublisherStatus(ctx)
		switch {
		case err != nil || s.Sent == 0:
		case began.IsZero():
			began, first = time.Now(), s.Sent
		case s.Sent >= int64(r.config.Events):
			return float64(s.Sent-first) / time.Since(began).Seconds(), nil
		}
	}
}

// show prints the figures, each beside the limit and the plain loop.
func show(out io.Writer, c Config, figures []Figure) error {
	of := map[string]float64{}
	for _, f := range figures {
		of[f.Name] = f.PerSecond
	}
	limit := min(of[driverFigure], of[sdkFigure])
	fmt.Fprintf(out, "%d events of %d aggregates; the broker is %v farther in the second half\n", c.Events, c.Aggregates, c.Latency)
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "\tevents/s\tof the slower bare limit\ttimes the plain loop")
	for _, f := range figures {
		plain := of[plainFigure]
		if strings.HasSuffix(f.Name, late("-late")) {
			plain = of[plainFigure+late("-late")]
		}
		fmt.Fprintf(table, "%s\t%.0f\t%.0f %%\t%.1f\n", f.Name, f.PerSecond, 100*f.PerSecond/limit, f.PerSecond/plain)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	encoded, err := json.Marshal(of)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", encoded)
	return err
}
