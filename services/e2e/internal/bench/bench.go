package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/cluster"
	"changerelay/services/e2e/internal/load"
	"changerelay/services/e2e/internal/orders"
	"changerelay/services/e2e/internal/poll"
	"changerelay/services/e2e/internal/report"
	"changerelay/services/e2e/internal/source"
	"changerelay/services/e2e/internal/validate"
)

// stopTimeout bounds the good order in which the processes stop at the end.
const stopTimeout = 30 * time.Second

// entities is the sandbox's configuration: the projectors' subscription only,
// for messages that nobody takes would be kept and measured.
const entities = `{
  "UserConfig": {
    "Namespaces": [{
      "Name": "sbemulatorns",
      "Queues": [],
      "Topics": [{
        "Name": "changes",
        "Properties": {"DuplicateDetectionHistoryTimeWindow": "PT10M", "RequiresDuplicateDetection": true, "EnablePartitioning": true},
        "Subscriptions": [{
          "Name": "projector",
          "Properties": {"LockDuration": "PT30S", "MaxDeliveryCount": 10, "RequiresSession": true}
        }]
      }]
    }],
    "Logging": {"Type": "Console"}
  }
}
`

// Bench is one run. New builds nothing and starts nothing.
type Bench struct {
	cfg     Config
	out     io.Writer
	root    string
	dir     string
	began   time.Time
	cluster *cluster.Cluster
	client  *mongo.Client
	written counter

	writing time.Duration
	through time.Duration

	mu        sync.Mutex // guards what follows
	completed map[*cluster.Node]int64
}

// New returns a benchmark that prints its progress to out.
func New(cfg Config, out io.Writer) *Bench {
	return &Bench{cfg: cfg, out: out, completed: make(map[*cluster.Node]int64)}
}

// Run runs the benchmark and returns its report. The error is why it could not
// come to its end; the report then says so too. No process is left behind.
func (b *Bench) Run(ctx context.Context) (*report.Report, error) {
	b.began = time.Now()
	r := &report.Report{Title: "Change Relay benchmark", Started: b.began.UTC()}
	err := b.run(ctx, r)
	if err != nil {
		r.Stopped = err.Error()
	}
	r.Seconds = time.Since(b.began).Seconds()
	r.Dir = b.dir
	r.Judge()
	return r, err
}

func (b *Bench) run(ctx context.Context, r *report.Report) error {
	binaries, err := b.build(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.cfg.Timeout, fmt.Errorf("the run took longer than %v", b.cfg.Timeout))
	defer cancel()
	if err := b.start(ctx, binaries); err != nil {
		return err
	}
	defer b.cluster.Close()
	r.Setup = b.setup()
	b.client, err = mongo.Connect(options.Client().ApplyURI(b.cluster.Endpoints().MongoURI))
	if err != nil {
		return fmt.Errorf("connect to MongoDB: %w", err)
	}
	err = b.measure(ctx, r)
	closing, cancelClosing := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancelClosing()
	_ = b.client.Disconnect(closing)
	if err != nil {
		return err
	}
	disorderly := b.stop(closing)
	r.Nodes = b.nodes()
	r.Checks = slices.Concat(r.Checks, b.memoryChecks(), []report.Check{disorderly})
	return nil
}

func (b *Bench) build(ctx context.Context) (cluster.Binaries, error) {
	root, err := cluster.Root()
	if err != nil {
		return cluster.Binaries{}, err
	}
	b.root, b.dir = root, b.cfg.Dir
	if b.dir == "" {
		b.dir = filepath.Join(root, ".run", "bench-"+b.began.Format("20060102-150405"))
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return cluster.Binaries{}, fmt.Errorf("make directory of the run: %w", err)
	}
	if b.cfg.Bin != "" {
		return cluster.BinariesIn(b.cfg.Bin)
	}
	fmt.Fprintln(b.out, "building sandbox, publisher and projector")
	return cluster.Build(ctx, root, filepath.Join(root, ".run", "bin"), b.cfg.Version)
}

func (b *Bench) start(ctx context.Context, binaries cluster.Binaries) error {
	config := filepath.Join(b.dir, "Config.json")
	if err := os.WriteFile(config, []byte(entities), 0o644); err != nil {
		return fmt.Errorf("write the sandbox's configuration: %w", err)
	}
	b.cluster = cluster.New(cluster.Config{
		Binaries:    binaries,
		Dir:         b.dir,
		Publishers:  b.cfg.Publishers,
		Projectors:  b.cfg.Projectors,
		Lease:       cluster.LeaseOf(15 * time.Second),
		Names:       cluster.DefaultNames(),
		Projections: filepath.Join(b.root, "services", "e2e", "orders.yaml"),
		SandboxArgs: []string{
			"--mongo", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--management", "127.0.0.1:0", "--http", "127.0.0.1:0", "--config", config,
		},
	})
	if err := b.up(ctx); err != nil {
		b.cluster.Close()
		return err
	}
	return nil
}

func (b *Bench) up(ctx context.Context) error {
	if err := b.cluster.StartServers(ctx); err != nil {
		return err
	}
	if err := b.cluster.StartServices(); err != nil {
		return err
	}
	if _, _, err := b.cluster.AwaitLeader(ctx, 0); err != nil {
		return err
	}
	for _, p := range b.cluster.Projectors {
		err := poll.Until(ctx, p.Name+" to be up", func(ctx context.Context) (bool, string) {
			_, err := p.ProjectorStatus(ctx)
			return err == nil, fmt.Sprint(err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// measure drives the events through and judges what came out.
func (b *Bench) measure(ctx context.Context, r *report.Report) error {
	names := b.cluster.Names()
	writer := source.NewWriter(b.client, names.SourceDatabase, names.SourceCollection)
	began := time.Now()
	g, gctx := errgroup.WithContext(ctx)
	done := make(chan struct{})
	g.Go(func() error {
		defer func() { b.writing = time.Since(began) }()
		l := load.Load{
			To: &throttled{to: writer, behind: b.behind, most: b.cfg.Backlog}, Rate: b.cfg.Rate,
			Next:  load.Limited(b.cfg.Events, load.Generated(orders.NewGenerator(b.cfg.Seed, b.cfg.Aggregates))),
			Wrote: func(e []orders.Event) { b.written.add(len(e)) },
			Least: b.cfg.Timeout,
		}
		return l.Run(gctx, nil)
	})
	g.Go(func() error {
		defer close(done)
		err := poll.Until(gctx, "all events to be applied", func(ctx context.Context) (bool, string) {
			n := b.applied(ctx)
			return n >= b.cfg.Events, report.Thousands(int64(n))
		})
		b.through = time.Since(began)
		return err
	})
	g.Go(func() error { return b.progress(gctx, began, done) })
	if err := g.Wait(); err != nil {
		return err
	}
	r.Figures = b.figures(writer)
	checks, err := b.compare(ctx)
	r.Checks = checks
	return err
}

func (b *Bench) stop(ctx context.Context) report.Check {
	var disorderly validate.Findings
	for _, err := range cluster.Stop(ctx, slices.Concat(b.cluster.Publishers, b.cluster.Projectors)...) {
		disorderly.Add("%v", err)
	}
	for _, err := range cluster.Stop(ctx, b.cluster.Sandbox) {
		disorderly.Add("%v", err)
	}
	return report.AtMost("processes that did not stop in good order", float64(disorderly.Count), 0, report.Count, disorderly.Samples...)
}
