package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"changerelay/services/e2e/internal/campaign/modes"
	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/witness"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/load"
	"changerelay/services/e2e/internal/harness/pressure"
)

// campaign is one run.
type campaign struct {
	cfg     Config
	stop    context.Context // ends when no more faults are wanted
	out     io.Writer
	dir     string
	data    string // of the servers
	http    *http.Client
	network *network
	cluster *cluster.Cluster
	witness *witness.Witness
	odder   load.Inserter // of the orders that operators deal with
	began   time.Time

	binaries cluster.Binaries
	clocked  cluster.Binaries // with clocks that can be set wrong; none without a build
	release  cluster.Binaries // the last one; none without its history

	mu     sync.Mutex
	taken  map[string]bool // guarded by mu: what suffers a fault
	faults []report.Fault  // guarded by mu
	// remedies are what was done, once no more faults were injected, about what they have left.
	remedies []report.Fault // guarded by mu
	// sufferings are the faults that are over.
	sufferings []suffering    // guarded by mu
	killed     time.Time      // guarded by mu: when a service was last killed that did not stop; zero where none was
	vanished   []string       // guarded by mu: processes that ended, and not by a fault
	done       map[string]int // guarded by mu: how often each kind of fault, or remedy, was done
	mistakes   []string       // guarded by mu: operators' mistakes that were not refused
	// odd are the orders that operators deal with, open those that are not dealt with yet.
	odd  []*odd        // guarded by mu
	open map[*odd]bool // guarded by mu
	// done by operators: what they have given up, by their groups, and the commands about
	// checkpoints that they have run.
	leftOut map[string]witness.LeftOut // guarded by mu
	moves   []witness.Move             // guarded by mu
	broken  validate.Findings          // guarded by mu: commands that have not done what they promise
	// restored is the earliest backup that the read database was put back to, until that is
	// repaired; lacking is what it lacked before. Both are nil where it was not.
	restored *backup // guarded by mu
	lacking  *lack   // guarded by mu
	// repairs are what operators mend while faults go on; nil where they do not.
	repairs *repairs
	// besideFile declares the read model of another group.
	besideFile string
	// restarting is the longest time that the servers took to be ready again.
	restarting time.Duration // guarded by mu
	drained    error
	recovery   time.Duration
	bound      time.Duration // of recovery
}

// Run does the campaign and returns its report; no more faults are injected once enough
// ends. The error is why it could not come to its end. No process is left behind.
func Run(ctx, enough context.Context, cfg Config, out io.Writer) (*report.Report, error) {
	c := &campaign{
		stop: enough,
		cfg:  cfg, out: out, http: &http.Client{Timeout: 2 * time.Second},
		network: newNetwork(), taken: make(map[string]bool), done: make(map[string]int), began: time.Now(),
		open: make(map[*odd]bool), leftOut: make(map[string]witness.LeftOut),
	}
	r := &report.Report{Title: "Change Relay chaos", Started: c.began.UTC(), Setup: []report.Fact{
		{Name: "seed", Text: fmt.Sprint(cfg.Seed)},
		{Name: "faults", Text: fmt.Sprintf("one every %v for %v", cfg.Every, cfg.Duration)},
		{Name: "load", Text: fmt.Sprintf("at least %s events, %s a second in a steady phase", report.Thousands(int64(cfg.Events)), report.Thousands(int64(cfg.Rate)))},
		{Name: "cluster", Text: fmt.Sprintf("%d publishers, %d projectors, lease %v", cfg.Publishers, cfg.Projectors, cfg.Lease)},
		{Name: "settings", Text: cfg.mode().String()},
	}}
	err := c.run(ctx, r)
	if err != nil {
		r.Stopped = err.Error()
	}
	r.Seconds, r.Dir, r.Faults, r.Remedies = time.Since(c.began).Seconds(), c.dir, c.faults, c.remedies
	r.Judge()
	return r, err
}

func (c *campaign) run(ctx context.Context, r *report.Report) error {
	if err := c.layOut(ctx); err != nil {
		return err
	}
	defer c.network.close()
	defer c.cluster.Close()
	if err := c.cluster.StartServers(ctx); err != nil {
		return err
	}
	if err := c.cfg.mode().PrepareSource(ctx, c.cluster.Endpoints(), c.cluster.Names()); err != nil {
		return err
	}
	_, judged := c.cfg.mode().ReadModels(c.cfg.Operators != "")
	w, err := witness.OpenSettling(ctx, c.cluster.Endpoints(), c.cluster.Names(), judged)
	if err != nil {
		return err
	}
	c.witness = w
	closeWitness := sync.OnceFunc(func() { w.Close(ctx) })
	defer closeWitness()
	if c.cfg.mode().Beside {
		if err := c.layOutBeside(ctx); err != nil {
			return err
		}
	}
	if c.cfg.mode().Repairs {
		if err := c.layOutRepairs(ctx); err != nil {
			return err
		}
		defer os.RemoveAll(c.repairs.dir)
	}
	c.odder = c.cfg.mode().Writer(w.Client, c.cluster.Names())
	goOn, err := c.cfg.mode().WriteEarly(ctx, c.cfg.Seed, c.odder, w)
	if err != nil {
		return err
	}
	if err := c.cluster.StartServices(); err != nil {
		return err
	}
	if _, _, err := c.cluster.AwaitLeader(ctx, 0); err != nil {
		return err
	}
	if err := cmp.Or(goOn(ctx), c.cfg.mode().WriteHalted(ctx, c.odder, w)); err != nil {
		return err
	}
	if err := c.play(ctx); err != nil {
		return err
	}
	return c.judge(ctx, r)
}

// oplogBytes is how much of its history the source keeps: minutes, as events are
// many and some are large.
const oplogBytes = 2 << 30

// layOut prepares the cluster, on addresses that the servers keep when they are
// killed and come back.
func (c *campaign) layOut(ctx context.Context) error {
	c.say("building, unless it is built")
	place, err := cluster.Prepare(ctx, "chaos", cluster.Wish{Dir: c.cfg.Dir, Bin: c.cfg.Bin})
	if err != nil {
		return err
	}
	c.dir = place.Dir
	if err := c.buildMore(ctx, &place); err != nil {
		return err
	}
	c.binaries = place.Binaries
	c.data = filepath.Join(c.dir, "data")
	if err := os.MkdirAll(c.data, 0o755); err != nil {
		return fmt.Errorf("make directory of the run: %w", err)
	}
	if c.cfg.Backend != nil {
		return c.layOutOver(place)
	}
	args := []string{"--data", c.data, "--oplog-bytes", fmt.Sprint(oplogBytes)}
	for _, flag := range []string{"--mongo", "--servicebus", "--management", "--http"} {
		address, err := cluster.FreeAddress()
		if err != nil {
			return err
		}
		args = append(args, flag, address)
	}
	more, err := c.surroundings(place.Root)
	if err != nil {
		return err
	}
	args = append(args, more...)
	mode := c.cfg.mode()
	declared, err := mode.Projections(place.Root, c.dir)
	if err != nil {
		return err
	}
	c.cluster = cluster.New(cluster.Config{
		Binaries: place.Binaries, Dir: c.dir,
		Publishers: c.cfg.Publishers, Projectors: c.cfg.Projectors,
		Lease: cluster.LeaseOf(c.cfg.Lease), Names: mode.Names(cluster.DefaultNames()), Canaries: true,
		Projections: declared,
		SandboxArgs: args, World: c.cfg.World, Reach: c.network.reach,
		PublisherEnv: mode.Publisher, ProjectorEnv: mode.Projector,
	})
	return nil
}

// layOutOver prepares the services over servers that are given, with databases of this
// run alone.
func (c *campaign) layOutOver(place cluster.Place) error {
	mode := c.cfg.mode()
	declared, _ := mode.ReadModels(false)
	c.cluster = cluster.New(cluster.Config{
		Binaries: place.Binaries, Dir: c.dir, Backend: c.cfg.Backend,
		Publishers: c.cfg.Publishers, Projectors: c.cfg.Projectors,
		Lease: cluster.LeaseOf(c.cfg.Lease), Names: mode.Names(cluster.DefaultNames()).OfRun(cluster.RunName(c.began)), Canaries: true,
		Projections:  cluster.Projections(place.Root, declared...),
		PublisherEnv: mode.Publisher, ProjectorEnv: mode.Projector,
	})
	return nil
}

// surroundings writes down what operators, or a second group, need beside the relay, and returns the
// arguments that the servers take for it.
func (c *campaign) surroundings(root string) (args []string, err error) {
	var more []string
	if c.cfg.Operators != "" || c.cfg.mode().Beside || c.cfg.mode().Repairs {
		more = append(more, elsewhere, besideSub)
	}
	if len(more) == 0 && !c.cfg.mode().Mixed() {
		return nil, nil
	}
	if c.besideFile, err = c.cfg.mode().BesideProjection(root, c.dir); err != nil {
		return nil, err
	}
	window := modes.UsualWindow
	if c.cfg.restores() {
		window = modes.ShortestWindow
	}
	file, err := c.cfg.mode().Entities(c.dir, cluster.DefaultNames(), window, more...)
	return []string{"--config", file}, err
}

// errPlayed ends the witness when there is nothing more to see.
var errPlayed = errors.New("played")

// play writes and injects faults, side by side, and waits for recovery and drain.
func (c *campaign) play(ctx context.Context) error {
	c.began = time.Now()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.witness.Run(ctx) })
	g.Go(func() error { return c.witness.Probe(ctx, c.answeredLate) })
	if c.repairs != nil {
		g.Go(func() error { c.read(ctx); return nil })
	}
	g.Go(func() error {
		if err := c.injectAll(ctx); err != nil {
			return err
		}
		c.recover(ctx)
		return cmp.Or(context.Cause(ctx), errPlayed)
	})
	if err := g.Wait(); !errors.Is(err, errPlayed) {
		return err
	}
	return nil
}

// injectAll carries the plan out while the workload is written, and returns when all
// is undone.
func (c *campaign) injectAll(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	faults, over := context.WithCancel(ctx)
	defer over()
	work := workload{cfg: c.cfg, to: c.shop(faults.Done()), wrote: c.wrote, counts: c.witness.Ledger.Counts, say: c.say}
	g.Go(func() error { return work.run(ctx, faults) })
	g.Go(func() error {
		defer over()
		injections, ctx := errgroup.WithContext(ctx)
		for s := range planned(c.cfg) {
			if c.enough(s.at) || !sleepUntil(ctx, c.began.Add(s.at)) {
				break
			}
			injections.Go(func() error { return c.inject(ctx, s) })
		}
		return injections.Wait()
	})
	return g.Wait()
}

// enough says that no fault is to be injected at that time any more.
func (c *campaign) enough(at time.Duration) bool {
	written, _ := c.witness.Ledger.Counts()
	return c.stop.Err() != nil || at >= c.cfg.Duration && written >= c.cfg.Events
}

// inject does one fault, waits, and undoes it.
func (c *campaign) inject(ctx context.Context, s injection) error {
	from := time.Now()
	what, undo, err := s.fault.do(ctx, c, rand.New(rand.NewPCG(s.draw, 0)))
	switch {
	case errors.Is(err, errNobody):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", s.fault.name, err)
	}
	outcome := "at once"
	if undo != nil {
		outcome = fmt.Sprintf("for %.1f s", s.lasts.Seconds())
	}
	c.note(s.fault.name, what, outcome)
	defer c.suffered(s.fault.name, what, from)
	if undo == nil {
		return nil
	}
	sleepUntil(ctx, time.Now().Add(s.lasts))
	if err := undo(ctx); err != nil {
		return fmt.Errorf("end %s: %w", what, err)
	}
	return nil
}

// recover waits until everything that was written has arrived. Its bound is that of a
// machine with processors to spare; on another one, up to twice that is allowed for the
// time in which something waited for one.
func (c *campaign) recover(ctx context.Context) {
	c.say("no more faults; waiting for the rest to arrive")
	began := time.Now()
	for _, n := range c.cluster.Nodes() {
		if !n.Running() {
			if err := c.vanish(n); !errors.Is(err, errNobody) {
				c.say("%v", err)
			}
		}
	}
	before := pressure.Now()
	bound := func() time.Duration { return c.cfg.Settle + pressure.Now().Since(before, 2*c.cfg.Settle) }
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() {
		for sleepUntil(ctx, time.Now().Add(time.Second)) {
			if most := bound(); time.Since(began) > most {
				end(fmt.Errorf("not at rest after %.0f s", most.Seconds()))
			}
		}
	}()
	switch {
	case c.cfg.Operators != "":
		c.drained = c.followAdvice(ctx)
	case c.repairs != nil:
		if c.drained = c.mendAll(ctx); c.drained == nil {
			c.drained = c.witness.AwaitDrain(ctx)
		}
	default:
		c.drained = c.witness.AwaitDrain(ctx)
	}
	c.recovery, c.bound = time.Since(began), bound()
}

func (c *campaign) services() []*cluster.Node {
	return slices.Concat(c.cluster.Publishers, c.cluster.Projectors)
}

// sleepUntil waits; false when ctx ended first.
func sleepUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
