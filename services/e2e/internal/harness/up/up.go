package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"changerelay/services/e2e/internal/harness/cluster"
)

const (
	// startTimeout bounds the time from the start of the servers until all is at work.
	startTimeout = 2 * time.Minute
	// stopTimeout bounds the good order in which everything stops.
	stopTimeout = 30 * time.Second
	// lookEvery is how often it is looked whether a process has ended.
	lookEvery = 250 * time.Millisecond
	// lastLines is how much of its log is shown of a process that has ended.
	lastLines = 12
)

// Run runs everything until ctx ends, and prints to out where it is. No process
// is left behind. The error says which process did not start, or has ended, and
// how.
func Run(ctx context.Context, cfg Config, out io.Writer) error {
	if cfg.Bin == "" {
		fmt.Fprintln(out, "building sandbox, publisher and projector")
	}
	place, err := cluster.Prepare(ctx, "up", cluster.Wish{Dir: cfg.Dir, Bin: cfg.Bin})
	if err != nil {
		return err
	}
	err = errors.Join(known(ctx, "--publisher", place.Binaries.Publisher, cfg.Publisher), known(ctx, "--projector", place.Binaries.Projector, cfg.Projector))
	if err != nil {
		return err
	}
	c := cluster.New(cfg.layout(place))
	defer c.Close()
	if err := start(ctx, c); err != nil {
		return err
	}
	return Stay(ctx, c, place.Dir, out)
}

// Stay prints to out where a cluster that is at work is, and stops it in good order
// when ctx ends. The error says which process has ended before, and how.
func Stay(ctx context.Context, c *cluster.Cluster, dir string, out io.Writer) error {
	if err := commands(c, dir); err != nil {
		return err
	}
	page, err := newOverview(c, dir)
	if err != nil {
		return err
	}
	serving, end := context.WithCancel(ctx)
	var served sync.WaitGroup
	served.Go(func() { page.serve(serving) })
	defer served.Wait()
	defer end()
	if err := announce(out, c, page.url(), dir); err != nil {
		return err
	}
	if err := await(ctx, c); err != nil {
		return err
	}
	fmt.Fprintln(out, "stopping")
	return stop(context.WithoutCancel(ctx), c)
}

func (cfg *Config) layout(place cluster.Place) cluster.Config {
	sandbox := []string{"--mongo", cfg.Mongo, "--servicebus", cfg.ServiceBus, "--management", "127.0.0.1:0", "--http", cfg.Page}
	if cfg.Data != "" {
		sandbox = append(sandbox, "--data", cfg.Data)
	}
	return cluster.Config{
		Binaries: place.Binaries, Dir: place.Dir,
		Publishers: cfg.Publishers, Projectors: cfg.Projectors,
		Lease: cluster.LeaseOf(6 * time.Second), Names: cfg.Names,
		SandboxArgs: sandbox, World: cfg.World, Projections: cfg.Projections,
		PublisherEnv: cfg.Publisher, ProjectorEnv: cfg.Projector,
	}
}

// start returns when a publisher leads and the projectors are at work.
func start(ctx context.Context, c *cluster.Cluster) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not at work within %s", startTimeout))
	defer cancel()
	if err := c.StartServers(ctx); err != nil {
		return err
	}
	return StartServices(ctx, c)
}

// StartServices starts publishers and projectors, and returns when they are at work.
// The error says which one has ended, and how.
func StartServices(ctx context.Context, c *cluster.Cluster) error {
	if err := c.StartServices(); err != nil {
		return err
	}
	// A service with a setting that is wrong ends at once, and never is at work.
	ended := make(chan error, 1)
	watching, over := context.WithCancel(ctx)
	go func() {
		err := await(watching, c)
		if err != nil {
			over()
		}
		ended <- err
	}()
	_, _, err := c.AwaitLeader(watching, 0)
	if err == nil {
		err = c.AwaitProjectors(watching)
	}
	over()
	if end := <-ended; end != nil {
		return end
	}
	return err
}

// await returns nil when ctx ends, and an error when a process does.
func await(ctx context.Context, c *cluster.Cluster) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		for _, n := range c.Nodes() {
			if !n.Running() {
				lines := strings.Split(strings.TrimSpace(n.Log()), "\n")
				return fmt.Errorf("%s has ended:\n%s\nsee %s", n.Name, strings.Join(lines[max(0, len(lines)-lastLines):], "\n"), n.LogPath())
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// announce prints where everything is.
func announce(out io.Writer, c *cluster.Cluster, overview, dir string) error {
	e, n := c.Endpoints(), c.Names()
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table)
	fmt.Fprintf(table, "page of all\t%s\n", overview)
	fmt.Fprintf(table, "MongoDB\t%s\n", e.MongoURI)
	fmt.Fprintf(table, "  source\t%s.%s\n", n.SourceDatabase, n.SourceCollection)
	fmt.Fprintf(table, "  read models\t%s\n", n.ReadModelDatabase)
	fmt.Fprintf(table, "Service Bus\t%s\n", e.ServiceBus)
	fmt.Fprintf(table, "  topic\t%s, subscription %s\n", n.Topic, n.Subscription)
	fmt.Fprintf(table, "sandbox\t%s\n", e.SandboxStatusURL)
	for _, service := range slices.Concat(c.Publishers, c.Projectors) {
		page, err := service.Page()
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%s\n", service.Name, page)
	}
	fmt.Fprintf(table, "commands\t%s/publisher status, %s/projector doctor, ...\n", dir, dir)
	fmt.Fprintf(table, "logs\t%s\n", dir)
	fmt.Fprintln(table, "\nCtrl-C stops everything.")
	return table.Flush()
}

// stop stops the services, then the sandbox, each in good order.
func stop(ctx context.Context, c *cluster.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	errs := cluster.Stop(ctx, slices.Concat(c.Publishers, c.Projectors)...)
	return errors.Join(append(errs, cluster.Stop(ctx, c.Sandbox)...)...)
}
