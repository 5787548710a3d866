package demo

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/source"
	"changerelay/services/e2e/internal/harness/up"
)

// declaration is the demo's projection file, from the repository's root.
const declaration = "services/e2e/orders.yaml"

// stopTimeout bounds the good order in which the services stop at the end.
const stopTimeout = 30 * time.Second

// Demo is one run. New builds nothing and starts nothing.
type Demo struct {
	cfg     Config
	out     io.Writer
	root    string
	dir     string
	began   time.Time
	cluster *cluster.Cluster

	witness   *witness.Witness
	nemesis   *nemesis
	writer    *source.Writer
	wroteFor  time.Duration
	drainedIn time.Duration
	// drained is nil once everything written was seen in the read model.
	drained error
	// kept says that the processes are up still.
	kept bool
}

// New returns a demo that prints its progress to out.
func New(cfg Config, out io.Writer) *Demo {
	return &Demo{cfg: cfg, out: out}
}

// Run runs the demo and returns its report. The error is why the run could not
// come to its end; the report then says so too. No process is left behind, unless
// the run came to its end and is to be kept: then Linger is to be called.
func (d *Demo) Run(ctx context.Context) (*report.Report, error) {
	d.began = time.Now()
	r := &report.Report{Title: "Change Relay demo", Started: d.began.UTC()}
	err := d.run(ctx, r)
	switch {
	case ctx.Err() != nil && err != nil:
		// What was under way has failed with it, and is of no interest.
		r.Stopped = fmt.Sprintf("stopped before the end (%s), so nothing is judged", context.Cause(ctx))
	case err != nil:
		r.Stopped = err.Error()
	}
	r.Seconds = time.Since(d.began).Seconds()
	r.Dir = d.dir
	r.Judge()
	return r, err
}

// Linger prints where everything is that was kept up, and stops it when ctx ends.
// Where nothing is, it returns at once.
func (d *Demo) Linger(ctx context.Context) error {
	if !d.kept {
		return nil
	}
	defer d.cluster.Close()
	return up.Stay(ctx, d.cluster, d.dir, d.out)
}

func (d *Demo) run(ctx context.Context, r *report.Report) error {
	binaries, err := d.build(ctx)
	if err != nil {
		return err
	}
	layout, err := d.layout(binaries)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d.cfg.Timeout, fmt.Errorf("the run took longer than %v", d.cfg.Timeout))
	defer cancel()
	d.cluster = cluster.New(layout)
	defer func() {
		if !d.kept {
			d.cluster.Close()
		}
	}()
	r.Setup = d.setup()
	if err := d.start(ctx); err != nil {
		return err
	}
	// Before the sandbox stops, or the client would look for it for a while.
	closeWitness := sync.OnceFunc(func() { d.witness.Close(ctx) })
	defer closeWitness()
	err = d.play(ctx)
	r.Faults = d.nemesis.faults
	if err != nil {
		return err
	}
	for _, p := range d.cluster.Projectors {
		d.nemesis.repeats.note(ctx, p)
	}
	if !d.cfg.Keep {
		d.stop(ctx, slices.Concat(d.cluster.Publishers, d.cluster.Projectors)...)
	}
	if err := d.judge(ctx, r); err != nil {
		return err
	}
	closeWitness()
	if d.kept = d.cfg.Keep; !d.kept {
		r.Nodes = d.nodes(ctx)
	}
	return nil
}

// build makes the run's directory and the binaries, unless those are given.
func (d *Demo) build(ctx context.Context) (cluster.Binaries, error) {
	if d.cfg.Bin == "" {
		d.say("building sandbox, publisher and projector")
	}
	place, err := cluster.Prepare(ctx, "demo", cluster.Wish{Dir: d.cfg.Dir, Bin: d.cfg.Bin, Version: d.cfg.Version})
	d.root, d.dir = place.Root, place.Dir
	if err == nil && d.cfg.Bin == "" {
		d.say("built in %.1f s", time.Since(d.began).Seconds())
	}
	return place.Binaries, err
}

func (d *Demo) clusterLease() cluster.Lease { return cluster.LeaseOf(d.cfg.Lease) }

func (d *Demo) layout(binaries cluster.Binaries) (cluster.Config, error) {
	cfg := cluster.Config{
		Binaries:   binaries,
		Dir:        d.dir,
		Publishers: d.cfg.Publishers,
		Projectors: d.cfg.Projectors,
		Lease:      d.clusterLease(),
		Names:      cluster.DefaultNames(),
		Backend:    d.cfg.Backend,
		World:      d.cfg.World,
		Canaries:   true,
	}
	if d.cfg.Backend != nil {
		cfg.Names = cfg.Names.OfRun(cluster.RunName(d.began))
	}
	if d.cfg.Input == "" {
		cfg.Projections = filepath.Join(d.root, filepath.FromSlash(declaration))
		return cfg, nil
	}
	declared, err := d.declare()
	cfg.Projections = declared
	if d.cfg.Projections != "" {
		cfg.Projections = d.cfg.Projections + "," + declared
	}
	return cfg, err
}

// start starts the servers, everything that watches, and then the services, so
// that no first message or write goes unseen.
func (d *Demo) start(ctx context.Context) error {
	if err := d.cluster.StartServers(ctx); err != nil {
		return err
	}
	w, err := witness.Open(ctx, d.cluster.Endpoints(), d.cluster.Names(), d.projection())
	if err != nil {
		return err
	}
	d.witness = w
	d.writer = source.NewWriter(w.Client, d.cluster.Names().SourceDatabase, d.cluster.Names().SourceCollection)
	if err := d.up(ctx); err != nil {
		w.Close(ctx)
		return err
	}
	return nil
}

// projection is the read model that the run's projectors keep.
func (d *Demo) projection() witness.Projection {
	switch {
	case d.cfg.Projections != "":
		return witness.Beside(countCollection)
	case d.cfg.Input != "":
		return witness.Latest.CountedIn(countCollection)
	}
	return witness.Orders
}

// up starts the services and waits until they are at work.
func (d *Demo) up(ctx context.Context) error {
	if err := up.StartServices(ctx, d.cluster); err != nil {
		return err
	}
	leader, status, err := d.cluster.AwaitLeader(ctx, 0)
	if err != nil {
		return err
	}
	d.say("%s leads term %d; logs are in %s", leader.Name, status.Term, d.dir)
	return nil
}

func (d *Demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }
