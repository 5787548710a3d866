package crashpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/campaign/modes"
	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/ingo"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/payload"
	"changerelay/services/e2e/internal/harness/poll"
)

// campaign kills at one step after another, on one running system.
type campaign struct {
	cfg      Config
	out      io.Writer
	rng      *rand.Rand
	began    time.Time
	dir      string
	cluster  *cluster.Cluster
	witness  *witness.Witness
	proxies  map[string][]*proxy // by node, then by Side
	kills    map[string]int      // by step
	faults   []report.Fault
	killed   []validate.Trouble
	slow     []validate.Trouble // times in which the servers answered late
	beside   *cluster.Node      // the projector of another group; nil for none
	odd      int                // documents written that cannot be mapped
	resends  []resent
	vanished []string // processes that ended, and that nobody killed
	drained  error
}

// Run does the campaign and returns its report. The error is why it could not
// come to its end. No process is left behind.
func Run(ctx context.Context, cfg Config, out io.Writer) (*report.Report, error) {
	c := &campaign{
		cfg: cfg, out: out, rng: rand.New(rand.NewPCG(cfg.Seed, 0x6372617368)), began: time.Now(),
		proxies: make(map[string][]*proxy), kills: make(map[string]int),
	}
	r := &report.Report{Title: "Change Relay crash points", Started: c.began.UTC(), Setup: []report.Fact{
		{Name: "seed", Text: fmt.Sprint(cfg.Seed)},
		{Name: "faults", Text: fmt.Sprintf("%d kills at each of %d steps", cfg.Kills, len(cfg.steps()))},
		{Name: "settings", Text: cfg.mode().String()},
	}}
	err := c.run(ctx, r)
	if err != nil {
		r.Stopped = err.Error()
	}
	r.Seconds, r.Dir, r.Faults = time.Since(c.began).Seconds(), c.dir, c.faults
	r.Judge()
	return r, err
}

func (c *campaign) run(ctx context.Context, r *report.Report) error {
	place, err := cluster.Prepare(ctx, "crashpoints", cluster.Wish{Dir: c.cfg.Dir, Bin: c.cfg.Bin})
	if err != nil {
		return err
	}
	c.dir = place.Dir
	if err := c.layOut(ctx, &place); err != nil {
		return err
	}
	defer c.closeProxies()
	defer c.close()
	if err := c.cluster.StartServers(ctx); err != nil {
		return err
	}
	mode := c.cfg.mode()
	if err := mode.PrepareSource(ctx, c.cluster.Endpoints(), c.cluster.Names()); err != nil {
		return err
	}
	_, judged := mode.ReadModels(false)
	if c.witness, err = witness.Open(ctx, c.cluster.Endpoints(), c.cluster.Names(), judged); err != nil {
		return err
	}
	closeWitness := sync.OnceFunc(func() { c.witness.Close(ctx) })
	defer closeWitness()
	if mode.Beside {
		if err := c.layOutBeside(ctx, place.Root); err != nil {
			return err
		}
	}
	to := mode.Writer(c.witness.Client, c.cluster.Names())
	goOn, err := mode.WriteEarly(ctx, c.cfg.Seed, to, c.witness)
	if err != nil {
		return err
	}
	if err := c.cluster.StartServices(); err != nil {
		return err
	}
	if _, _, err := c.cluster.AwaitLeader(ctx, 0); err != nil {
		return err
	}
	if err := cmp.Or(goOn(ctx), mode.WriteHalted(ctx, to, c.witness)); err != nil {
		return err
	}
	if err := c.play(ctx); err != nil {
		return err
	}
	return c.judge(ctx, r)
}

// layOut prepares the cluster as the seed has it.
func (c *campaign) layOut(ctx context.Context, place *cluster.Place) (err error) {
	mode := c.cfg.mode()
	names := mode.Names(cluster.DefaultNames())
	if mode.InGo {
		if place.Binaries, err = ingo.Build(ctx, place.Root, ""); err != nil {
			return err
		}
	}
	// A restarted leader leads at once, so that many kills fit into an hour.
	publishers := map[string]string{"INSTANCE_ID_UNIQUE": "true"}
	maps.Copy(publishers, mode.Publisher)
	// Processes die in the middle of applying, over and over, and no message is to
	// blame: with a limit some would be parked for it.
	projectors := map[string]string{"CRASH_LIMIT": "1000"}
	maps.Copy(projectors, mode.Projector)
	var args []string
	if mode.Beside || mode.Mixed() {
		var more []string
		if mode.Beside {
			more = append(more, modes.Beside)
		}
		file, err := mode.Entities(c.dir, names, modes.UsualWindow, more...)
		if err != nil {
			return err
		}
		args = cluster.SandboxAnywhere("--config", file)
	}
	declared, err := mode.Projections(place.Root, c.dir)
	if err != nil {
		return err
	}
	c.cluster = cluster.New(cluster.Config{
		Binaries: place.Binaries, Dir: c.dir, Publishers: 2, Projectors: 2,
		Lease: cluster.LeaseOf(leaseTTL), Names: names, Canaries: true, SandboxArgs: args,
		Projections: declared, Reach: c.reach,
		PublisherEnv: publishers, ProjectorEnv: projectors,
	})
	return nil
}

// layOutBeside adds a projector of another group, which nobody kills, for its processes
// are not among those that wait at a step.
func (c *campaign) layOutBeside(ctx context.Context, root string) error {
	file, err := c.cfg.mode().BesideProjection(root, c.dir)
	if err != nil {
		return err
	}
	if c.beside, err = modes.BesideDeployment(c.cluster, file, modes.Beside); err != nil {
		return err
	}
	if err := c.witness.JudgeBeside(ctx, modes.Beside); err != nil {
		return err
	}
	c.witness.AwaitBeside(modes.Beside)
	return c.beside.Start()
}

const (
	leaseTTL = 3 * time.Second
	// inFlight bounds how long what was held up takes to arrive.
	inFlight = 5 * time.Second
	// rate is how many events are written a second.
	rate = 400
	// stepTime bounds the wait for a step, and for the work to go on after a kill.
	stepTime = 90 * time.Second
	// drainTime bounds the drain at the end.
	drainTime = 2 * time.Minute
)

// reach is cluster.Config.Reach: it opens the node's proxies and says where they are.
func (c *campaign) reach(node string, e cluster.Endpoints) (cluster.Endpoints, error) {
	open := func(read func(io.Reader) ([]byte, error)) func(string) (string, error) {
		return func(upstream string) (string, error) {
			p, err := newProxy(node, upstream, read)
			if err != nil {
				return "", err
			}
			c.proxies[node] = append(c.proxies[node], p)
			return p.listener.Addr().String(), nil
		}
	}
	return e.Through(open(readMongo), open(readAMQP))
}

func (c *campaign) closeProxies() {
	for _, of := range c.proxies {
		for _, p := range of {
			p.close()
		}
	}
}

// close kills what is still running.
func (c *campaign) close() {
	if c.beside != nil {
		c.beside.Kill()
	}
	c.cluster.Close()
}

// errPlayed ends the witness when there is nothing more to see.
var errPlayed = errors.New("played")

// play writes and kills, side by side, and waits for the drain.
func (c *campaign) play(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.witness.Run(ctx) })
	g.Go(func() error {
		return c.witness.Probe(ctx, func(from, to time.Time) { c.slow = append(c.slow, validate.Trouble{From: from, To: to}) })
	})
	g.Go(func() error {
		if err := c.killAll(ctx); err != nil {
			return err
		}
		wait, cancel := context.WithTimeout(ctx, drainTime)
		defer cancel()
		if err := c.revive(); err != nil {
			return err
		}
		if c.drained = c.resentAll(wait); c.drained == nil {
			c.drained = c.witness.AwaitDrain(wait)
		}
		return errPlayed
	})
	if err := g.Wait(); !errors.Is(err, errPlayed) {
		return err
	}
	return nil
}

func (c *campaign) killAll(ctx context.Context) error {
	enough := make(chan struct{})
	g, ctx := errgroup.WithContext(ctx)
	l := load.Load{
		To: c.cfg.mode().Writer(c.witness.Client, c.cluster.Names()), Rate: rate,
		Next: c.cfg.mode().Failing(c.cfg.Seed, load.Dated(c.cfg.Seed, load.Laden(c.cfg.Seed, payload.StorableNames, load.Generated(orders.NewGenerator(c.cfg.Seed, 500))))), Wrote: c.witness.Ledger.Wrote,
	}
	g.Go(func() error { return l.Run(ctx, enough) })
	g.Go(func() error {
		defer close(enough)
		for _, step := range c.cfg.steps() {
			for range c.cfg.Kills {
				if err := c.kill(ctx, step); err != nil {
					return fmt.Errorf("kill at %q: %w", step.Name, err)
				}
			}
			c.say("killed %d times at %q", c.cfg.Kills, step.Name)
		}
		return nil
	})
	return g.Wait()
}

// kill kills a process at the step, starts it again and waits until the work
// goes on.
func (c *campaign) kill(ctx context.Context, step Step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stepTime, fmt.Errorf("nothing for %v", stepTime))
	defer cancel()
	if err := c.revive(); err != nil {
		return err
	}
	nth := 1 + c.rng.IntN(step.upTo)
	t := newTrap(step, nth)
	for _, n := range c.nodes(step.Kind) {
		c.proxies[n.Name][step.Side].set(t)
	}
	resume, err := c.prelude(ctx, step.Prelude)
	if err != nil {
		return err
	}
	var victim string
	select {
	case victim = <-t.sprung:
	case <-ctx.Done():
		return fmt.Errorf("wait for it to come by: %w", context.Cause(ctx))
	}
	at := time.Since(c.began)
	nodes := c.nodes(step.Kind)
	n := nodes[slices.IndexFunc(nodes, func(n *cluster.Node) bool { return n.Name == victim })]
	c.killNode(n)
	for _, n := range nodes {
		c.proxies[n.Name][step.Side].set(nil)
	}
	c.proxies[victim][step.Side].cut()
	c.kills[step.Name]++
	c.faults = append(c.faults, report.Fault{At: at.Seconds(), Kind: "SIGKILL at a crash point", What: "SIGKILL of " + victim, Outcome: fmt.Sprintf("%s, time %d", step.Name, nth)})
	if err := n.Start(); err != nil {
		return err
	}
	if err := resume(n); err != nil {
		return err
	}
	return c.goesOn(ctx, step.Kind)
}

// revive notes the services that have ended by themselves, and starts them again.
func (c *campaign) revive() error {
	for _, n := range c.services() {
		if n.Running() {
			continue
		}
		c.vanished = append(c.vanished, fmt.Sprintf("%s ended by itself: see %s", n.Name, n.LogPath()))
		c.say("%s ended by itself", n.Name)
		if err := n.Start(); err != nil {
			return err
		}
	}
	return nil
}

// services are all processes of the relay.
func (c *campaign) services() []*cluster.Node {
	all := slices.Concat(c.cluster.Publishers, c.cluster.Projectors)
	if c.beside != nil {
		all = append(all, c.beside)
	}
	return all
}

// killNode kills a service, and notes when.
func (c *campaign) killNode(n *cluster.Node) {
	from := time.Now()
	n.Kill()
	c.killed = append(c.killed, validate.Trouble{Node: n.Name, From: from, To: time.Now()})
}

func (c *campaign) nodes(k Kind) []*cluster.Node {
	if k == Publisher {
		return c.cluster.Publishers
	}
	return c.cluster.Projectors
}

// goesOn waits until messages are accepted, or events applied, beyond what was
// at the time of the call.
func (c *campaign) goesOn(ctx context.Context, k Kind) error {
	count := func() int {
		if k == Publisher {
			return c.witness.Observer.Count()
		}
		_, applied := c.witness.Ledger.Counts()
		return applied
	}
	before := count()
	return poll.Until(ctx, "the work to go on", func(context.Context) (bool, string) { return count() > before, "nothing new" })
}

func (c *campaign) say(format string, args ...any) {
	fmt.Fprintf(c.out, "%7.1fs  %s\n", time.Since(c.began).Seconds(), fmt.Sprintf(format, args...))
}
