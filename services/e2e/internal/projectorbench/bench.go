package projectorbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/cluster"
	"changerelay/services/e2e/internal/poll"
)

// Run measures every shape at every latency and prints what comes out.
func Run(ctx context.Context, cfg Config, out io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.Timeout, fmt.Errorf("the run took longer than %v", cfg.Timeout))
	defer cancel()
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-projector-")
	if err != nil {
		return fmt.Errorf("make directory of the run: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binaries, err := binaries(ctx, cfg.Bin, root, dir)
	if err != nil {
		return err
	}
	for _, shape := range cfg.Shapes {
		for _, latency := range cfg.Latencies {
			r := round{shape: shape, latency: latency, dir: filepath.Join(dir, fmt.Sprintf("%d-%s", shape.Sessions, latency)), plainMessages: cfg.PlainMessages}
			if err := r.measure(ctx, binaries); err != nil {
				return fmt.Errorf("%s at %s: %w", shape.Name, latency, err)
			}
			r.print(out)
		}
	}
	return nil
}

func binaries(ctx context.Context, bin, root, dir string) (cluster.Binaries, error) {
	if bin != "" {
		return cluster.BinariesIn(bin)
	}
	return cluster.Build(ctx, root, filepath.Join(dir, "bin"), "")
}

// round measures one shape at one latency, on a sandbox of its own.
type round struct {
	shape         Shape
	latency       time.Duration
	dir           string
	plainMessages int

	// Messages a second.
	receive, write, transactions, projector, plain float64
	projectorPeak                                  int64 // bytes
}

func (r *round) measure(ctx context.Context, binaries cluster.Binaries) (err error) {
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	config := filepath.Join(r.dir, "Config.json")
	if err := os.WriteFile(config, []byte(entities), 0o600); err != nil {
		return fmt.Errorf("write the sandbox's configuration: %w", err)
	}
	proxies, stop := context.WithCancel(ctx)
	group, proxied := errgroup.WithContext(proxies)
	defer func() {
		stop()
		err = errors.Join(err, group.Wait())
	}()
	c := cluster.New(cluster.Config{
		Binaries: binaries, Dir: r.dir, Projectors: 1, Names: cluster.DefaultNames(),
		SandboxArgs: []string{"--mongo", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--management", "127.0.0.1:0", "--http", "127.0.0.1:0", "--config", config},
		Reach:       func(_ string, e cluster.Endpoints) (cluster.Endpoints, error) { return r.reach(proxied, group, e) },
	})
	defer c.Close()
	if err := c.StartServers(ctx); err != nil {
		return err
	}
	direct := c.Endpoints()
	if err := fill(ctx, direct.ServiceBus, r.shape); err != nil {
		return err
	}
	reached, err := r.reach(proxied, group, direct)
	if err != nil {
		return err
	}
	return r.all(ctx, c, reached)
}

// all measures the ways one after another.
func (r *round) all(ctx context.Context, c *cluster.Cluster, e cluster.Endpoints) error {
	total := r.shape.total()
	rate := func(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }
	took, err := rawSessions(ctx, e.ServiceBus, rawSubscription, total)
	if err != nil {
		return err
	}
	r.receive = rate(total, took)
	if took, err = rawWrites(ctx, e.MongoURI, "bulk", r.shape, false); err != nil {
		return err
	}
	r.write = rate(total, took)
	if took, err = rawWrites(ctx, e.MongoURI, "transactions", r.shape, true); err != nil {
		return err
	}
	r.transactions = rate(total, took)
	if took, err = relay(ctx, c.Projectors[0], total); err != nil {
		return err
	}
	c.Projectors[0].Kill()
	r.projector, r.projectorPeak = rate(total, took), c.Projectors[0].Usage().ResidentBytes
	handled, took, err := plainLoop(ctx, e.ServiceBus, e.MongoURI, "loop", r.shape, min(total, r.plainMessages))
	if err != nil {
		return err
	}
	r.plain = rate(handled, took)
	return nil
}

// relay has the projector empty its subscription. The time begins with its
// process, which is against it.
func relay(ctx context.Context, projector *cluster.Node, total int) (time.Duration, error) {
	began := time.Now()
	if err := projector.Start(); err != nil {
		return 0, err
	}
	var took time.Duration
	err := poll.Until(ctx, "the projector to complete everything", func(ctx context.Context) (bool, string) {
		s, err := projector.ProjectorStatus(ctx)
		took = time.Since(began)
		return err == nil && s.Completed >= int64(total), fmt.Sprintf("%d completed (%v)", s.Completed, err)
	})
	return took, err
}

// reach puts a proxy before each server where there is latency to add.
func (r *round) reach(ctx context.Context, group *errgroup.Group, e cluster.Endpoints) (cluster.Endpoints, error) {
	if r.latency == 0 {
		return e, nil
	}
	mongo, err := url.Parse(e.MongoURI)
	if err != nil {
		return e, fmt.Errorf("read the address of MongoDB: %w", err)
	}
	_, rest, _ := strings.Cut(e.ServiceBus, "sb://")
	bus, _, _ := strings.Cut(rest, ";")
	bus = strings.TrimSuffix(bus, "/")
	for _, target := range []*string{&mongo.Host, &bus} {
		proxy, err := newDelay(*target, r.latency)
		if err != nil {
			return e, err
		}
		if target == &bus {
			e.ServiceBus = strings.Replace(e.ServiceBus, bus, proxy.addr(), 1)
		}
		*target = proxy.addr()
		group.Go(func() error { return proxy.run(ctx) })
	}
	query := mongo.Query()
	query.Set("directConnection", "true")
	mongo.RawQuery = query.Encode()
	e.MongoURI = mongo.String()
	return e, nil
}

func (r *round) print(out io.Writer) {
	limit := min(r.receive, max(r.write, r.transactions))
	fmt.Fprintf(out, "%s: %d of %d messages, %s added to each round trip\n", r.shape.Name, r.shape.Sessions, r.shape.Messages, r.latency)
	for _, line := range []struct {
		name string
		rate float64
	}{
		{"receive and settle, bare client", r.receive},
		{"guarded writes, bare driver", r.write},
		{"the same in transactions", r.transactions},
		{"plain loop", r.plain},
		{"projector", r.projector},
	} {
		fmt.Fprintf(out, "  %-34s %10.0f a second\n", line.name, line.rate)
	}
	fmt.Fprintf(out, "  the projector is at %.0f %% of the slower limit, %.1f times the plain loop; at most %d MiB\n\n",
		100*r.projector/limit, r.projector/r.plain, r.projectorPeak>>20)
}
