package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/bench/results"
	"changerelay/services/e2e/internal/bench/speed"
	"changerelay/services/e2e/internal/bench/stage"
	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/watch"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
)

func repair(s Scale) experiment {
	e := experiment{
		name: "repair", title: "Repair beside live events",
		shows: fmt.Sprintf("%s events of %s orders, in a collection with the index of a copy, went through a projection with a bug, which is then mended under the same version, while %d events/s go on. A comparison has to find the wrong documents, and a rebuild to mend them, in the course of which the leader, a projector and the command itself get SIGKILL: "+
			"it counts only if a comparison then finds nothing. After that, in an order that is drawn, on the same servers: nothing; a resend of everything for a group of nobody; a comparison of everything; a rebuild; each as fast as it goes, with what it does in a second, and how long live events take meanwhile, from right before the insert until a change stream shows a document of another projection that has come to it.",
			report.Thousands(int64(s.Repaired)), report.Thousands(int64(s.repairedOrders())), s.live()),
	}
	for i := range s.Repeats {
		e.rounds = append(e.rounds, round{
			name: fmt.Sprintf("repetition %d", i+1), usual: 30*time.Second + s.Steady + 8*time.Duration(s.Repaired)*perEvent,
			measure: func(ctx context.Context, b *bench) ([]results.Point, error) { return b.repair(ctx) },
		})
	}
	return e
}

// repairedOrders is how many orders the events of a repair are of.
func (s Scale) repairedOrders() int { return max(s.Repaired/10, 1) }

// live is how many events a second go on beside a repair: few for how many there are, so
// that a slow machine carries them while it repairs.
func (s Scale) live() int { return max(min(s.Rates[0], s.Repaired/10), 1) }

// damaged is a relay whose projection had a bug for as long as history was written.
type damaged struct {
	*bench
	stage    *stage.Stage
	cluster  *cluster.Cluster
	operator *cluster.Node // a projector
	env      []string      // of the projectors, with the bug mended
	script   string        // runs the publisher's command line
	arrivals *arrivals
	// written is how many events there are; a load writes beside what is measured.
	written atomic.Int64
}

// repair makes one repetition.
func (b *bench) repair(ctx context.Context) (points []results.Point, err error) {
	s, err := b.open(ctx, relayTopic())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	d := damaged{bench: b, stage: s}
	faulty, right, err := b.declared(s.Dir)
	if err != nil {
		return nil, err
	}
	d.env = []string{"PROJECTIONS=" + right}
	d.cluster, err = s.Services(cluster.Config{Publishers: 2, Projectors: 2, Lease: cluster.LeaseOf(b.scale.Lease), Names: s.Names(changes), Projections: faulty})
	if err != nil {
		return nil, err
	}
	defer d.cluster.Close()
	d.operator = d.cluster.Projectors[0]
	scripts, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for a program: %w", err)
	}
	defer os.RemoveAll(scripts)
	if d.script, err = d.cluster.Publishers[0].Script(scripts); err != nil {
		return nil, err
	}
	if _, err = d.operator.Command(ctx, "setup"); err != nil {
		return nil, err
	}
	names := d.cluster.Names()
	source := s.Client().Database(names.SourceDatabase).Collection(names.SourceCollection)
	if _, err := source.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: speed.Order()}); err != nil {
		return nil, fmt.Errorf("make the index of a copy: %w", err)
	}
	d.arrivals = newArrivals(s.Source(changes))
	model := s.Client().Database(d.cluster.Names().ReadModelDatabase)
	applies, err := watch.OpenApplies(ctx, model.Collection("live"), func(a validate.Apply) { d.arrivals.saw(a, time.Now()) })
	if err != nil {
		return nil, err
	}
	if err := up(ctx, d.cluster); err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return applies.Run(ctx) })
	group.Go(func() error {
		var err error
		if points, err = d.play(ctx); err != nil {
			return err
		}
		return errDone
	})
	if err := group.Wait(); !errors.Is(err, errDone) {
		return nil, err
	}
	return points, nil
}

// declared writes the projections, with a bug and without: the demo's with a version, and
// one without that shows how far each order is.
func (b *bench) declared(dir string) (faulty, right string, err error) {
	text, err := os.ReadFile(filepath.Join(b.root, "services", "e2e", "orders.yaml"))
	if err != nil {
		return "", "", fmt.Errorf("declare projections: %w", err)
	}
	const name, total = "- name: orders\n", "total: data.price"
	versioned := strings.Replace(string(text), name, name+"    version: 1\n", 1)
	var live strings.Builder
	live.WriteString("projections:\n  - name: live\n    collection: live\n    on:\n")
	for _, kind := range []string{orders.Placed, orders.Added, orders.Removed, orders.Paid, orders.Shipped, orders.Cancelled} {
		fmt.Fprintf(&live, "      %s: {set: {version: event.version}}\n", kind)
	}
	path := func(file string) string { return filepath.Join(dir, file) }
	err = errors.Join(
		os.WriteFile(path("right.yaml"), []byte(versioned), 0o600),
		os.WriteFile(path("faulty.yaml"), []byte(strings.Replace(versioned, total, total+" + 1", 1)), 0o600),
		os.WriteFile(path("live.yaml"), []byte(live.String()), 0o600))
	return path("faulty.yaml") + "," + path("live.yaml"), path("right.yaml") + "," + path("live.yaml"), err
}

// play writes history through the bug, mends it, and measures.
func (d *damaged) play(ctx context.Context) (points []results.Point, err error) {
	next := load.Generated(orders.NewGenerator(seed, d.scale.repairedOrders()))
	if err := d.history(ctx, next); err != nil {
		return nil, err
	}
	for _, n := range d.cluster.Projectors {
		if errs := cluster.Stop(ctx, n); len(errs) > 0 {
			return nil, errors.Join(errs...)
		}
		if err := n.StartAs(n.Binary(), d.env...); err != nil {
			return nil, err
		}
	}
	if err := d.cluster.AwaitProjectors(ctx); err != nil {
		return nil, err
	}
	enough := make(chan struct{})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		l := load.Load{To: d.arrivals, Rate: d.scale.live(), Next: next, Wrote: func(e []orders.Event) { d.written.Add(int64(len(e))) }}
		return l.Run(ctx, enough)
	})
	group.Go(func() (err error) {
		defer close(enough)
		if points, err = d.proved(ctx); err != nil {
			return err
		}
		more, err := d.measured(ctx)
		points = append(points, more...)
		return err
	})
	return points, group.Wait()
}

// history writes what goes through the bug, and waits until all of it is applied.
func (d *damaged) history(ctx context.Context, next func() (orders.Event, bool)) error {
	const most, batch = 10_000, 500
	telling := d.telling()
	for written := 0; written < d.scale.Repaired; {
		events := make([]orders.Event, 0, batch)
		for len(events) < min(batch, d.scale.Repaired-written) {
			e, _ := next()
			events = append(events, e)
		}
		if err := d.arrivals.Insert(ctx, events); err != nil {
			return err
		}
		written += len(events)
		d.written.Store(int64(written))
		for d.arrivals.underWay() > most {
			if err := pause(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
		telling.now("%d of %d events written", written, d.scale.Repaired)
	}
	for d.arrivals.underWay() > 0 {
		telling.now("%d events are not readable yet", d.arrivals.underWay())
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// proved has a comparison find the wrong documents, and a rebuild mend them although
// processes are killed.
func (d *damaged) proved(ctx context.Context) ([]results.Point, error) {
	output, failed := d.command(ctx, "verify", "--projection", "orders", "--sample", "200", "--publisher", d.script, "--rate", "0")
	found := strings.Count(output, `"difference":"altered"`)
	if failed == nil || found == 0 {
		return nil, fmt.Errorf("a comparison finds nothing of a bug: %w: %s", failed, output)
	}
	d.say("        a comparison of a sample finds %d documents altered", found)
	began, events := time.Now(), d.written.Load()
	args := []string{"rebuild", "--projection", "orders", "--why", "the projection had a bug", "--publisher", d.script, "--rate", "0", "--grace", "0s"}
	killed, kill := context.WithCancel(ctx)
	defer kill()
	first := make(chan error, 1)
	go func() {
		_, err := d.command(killed, args...)
		first <- err
	}()
	if err := d.halfway(ctx); err != nil {
		return nil, errors.Join(err, <-first)
	}
	leader, _, err := d.cluster.AwaitLeader(ctx, 0)
	if err != nil {
		return nil, err
	}
	leader.Kill()
	d.cluster.Projectors[1].Kill()
	kill()
	if err := <-first; err == nil {
		d.say("        the rebuild was at its end before the command could be killed")
	}
	if err := errors.Join(leader.Start(), d.cluster.Projectors[1].StartAs(d.operator.Binary(), d.env...)); err != nil {
		return nil, err
	}
	if output, err := d.command(ctx, args...); err != nil {
		return nil, fmt.Errorf("a rebuild that was killed, again: %w: %s", err, output)
	}
	took := time.Since(began)
	if _, err := d.compared(ctx); err != nil {
		return nil, err
	}
	return []results.Point{{Name: "a rebuild, with SIGKILL of leader, projector and command", Figures: []results.Figure{perSecond("does", float64(events)/took.Seconds())}}}, nil
}

// halfway waits until some of the next version is there, or the command is past that.
func (d *damaged) halfway(ctx context.Context) error {
	model := d.stage.Client().Database(d.cluster.Names().ReadModelDatabase)
	for {
		n, err := model.Collection("orders_v2").EstimatedDocumentCount(ctx)
		if err != nil || n > int64(d.scale.repairedOrders()/10) {
			return err
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// command runs a projector's command in the environment without the bug.
func (d *damaged) command(ctx context.Context, args ...string) (string, error) {
	return d.operator.CommandIn(ctx, d.env, args...)
}

// compared compares all documents with the source, and returns how many events that were.
func (d *damaged) compared(ctx context.Context) (events int, err error) {
	events = int(d.written.Load())
	output, err := d.command(ctx, "verify", "--projection", "orders", "--publisher", d.script, "--rate", "0")
	if err != nil {
		return 0, fmt.Errorf("documents that were mended: %w: %s", err, output)
	}
	return events, nil
}

// measured does each thing in an order that is drawn, with how long live events take
// meanwhile.
func (d *damaged) measured(ctx context.Context) (points []results.Point, err error) {
	things := []struct {
		name string
		do   func(context.Context) (events int, err error)
	}{
		{"nothing", func(ctx context.Context) (int, error) { return 0, pause(ctx, d.scale.Steady) }},
		{"a resend", d.resent},
		{"a comparison", d.compared},
		{"a rebuild", func(ctx context.Context) (int, error) {
			events := int(d.written.Load())
			output, err := d.command(ctx, "rebuild", "--projection", "orders", "--why", "measured", "--publisher", d.script, "--rate", "0", "--grace", "0s")
			if err != nil {
				err = fmt.Errorf("a rebuild: %w: %s", err, output)
			}
			return events, err
		}},
	}
	d.order.Shuffle(len(things), func(i, j int) { things[i], things[j] = things[j], things[i] })
	for _, thing := range things {
		if err := d.arrivals.await(ctx, time.Now()); err != nil {
			return nil, err
		}
		from := time.Now()
		events, err := thing.do(ctx)
		if err != nil {
			return nil, err
		}
		to := time.Now()
		if err := d.arrivals.await(ctx, to); err != nil {
			return nil, err
		}
		var took []float64
		for _, s := range d.arrivals.readableAfter(from) {
			if s.written.After(from) && s.written.Before(to) {
				took = append(took, s.took().Seconds())
			}
		}
		figures := []results.Figure{results.One("live, p50", results.Seconds, results.Quantile(took, 0.5)), results.One("live, p99", results.Seconds, results.Quantile(took, 0.99))}
		if events > 0 {
			figures = slices.Insert(figures, 0, perSecond("does", float64(events)/to.Sub(from).Seconds()))
		}
		points = append(points, results.Point{Name: thing.name, Figures: figures})
	}
	return points, nil
}

// resent has everything sent again, for nobody, and returns how many events that were.
func (d *damaged) resent(ctx context.Context) (events int, err error) {
	events = int(d.written.Load())
	n := d.cluster.Publishers[0]
	if output, err := n.Command(ctx, "resend", "--all", "--group", "nobody", "--rate", "0", "--why", "measured"); err != nil {
		return 0, fmt.Errorf("a resend: %w: %s", err, output)
	}
	for {
		output, err := n.Command(ctx, "resend", "status", "--json")
		switch {
		case err != nil:
			return 0, err
		case strings.Contains(output, `"state":"done"`):
			return events, nil
		case !strings.Contains(output, `"state":"running"`):
			return 0, fmt.Errorf("a resend ends as %s", output)
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return 0, err
		}
	}
}
