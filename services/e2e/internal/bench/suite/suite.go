package suite

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"changerelay/services/e2e/internal/bench/results"
	"changerelay/services/e2e/internal/bench/stage"
	"changerelay/services/e2e/internal/harness/cluster"
)

// experiment is one question, and the rounds that answer it.
type experiment struct {
	name, title, shows string
	rounds             []round
	// world says that it changes the sandbox's world, so that it cannot be made on
	// servers that are given.
	world bool
}

// round measures some points of an experiment once.
type round struct {
	name string
	// usual is how long it takes on an idle machine with two cores; only what is
	// left to do is estimated from it.
	usual   time.Duration
	measure func(context.Context, *bench) ([]results.Point, error)
}

// bench is where rounds are made.
type bench struct {
	cfg   stage.Config
	scale Scale
	root  string
	run   string
	count int
	say   func(format string, args ...any)
	order *rand.Rand
}

// open sets up a stage for one measurement.
func (b *bench) open(ctx context.Context, topics ...stage.Topic) (*stage.Stage, error) {
	return b.openWith(ctx, b.cfg, topics...)
}

func (b *bench) openWith(ctx context.Context, cfg stage.Config, topics ...stage.Topic) (*stage.Stage, error) {
	b.count++
	return stage.Open(ctx, cfg, fmt.Sprintf("bench_%s_%d", b.run, b.count), topics...)
}

// leastPatience is how long any round may take.
const leastPatience = 3 * time.Minute

// Run measures, prints progress to out, and writes the result. The error is why
// it could not be written, or not be begun; what went wrong on the way is in the
// result.
func Run(ctx context.Context, cfg Config, out io.Writer) (*results.Result, error) {
	if cfg.From != "" {
		return show(cfg, out)
	}
	fmt.Fprintln(out, "building sandbox, publisher and projector")
	place, err := cluster.Prepare(ctx, "bench", cluster.Wish{Dir: cfg.Dir, Bin: cfg.Bin})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.Timeout, fmt.Errorf("the run took longer than %v", cfg.Timeout))
	defer cancel()
	began := time.Now()
	r := &results.Result{
		Started: began.UTC(), Quick: cfg.Quick, Parameters: cfg.Scale,
		Machine: results.ThisMachine(ctx, place.Root, servers(cfg)),
	}
	b := &bench{
		cfg: stage.Config{Place: place, Given: cfg.Given, World: cfg.World}, scale: cfg.Scale, root: place.Root, run: cluster.RunName(began), order: rand.New(rand.NewPCG(cfg.Seed, 0x6f72646572)),
	}
	all := slices.DeleteFunc(experiments(cfg.Scale), cfg.leavesOut)
	p := newProgress(out, all)
	b.say = p.note
	cfg.JSON = cmp.Or(cfg.JSON, filepath.Join(place.Dir, "bench.json"))
	cfg.Page = cmp.Or(cfg.Page, filepath.Join(place.Dir, "bench.html"))
	b.say("rows are measured in the order of seed %d", cfg.Seed)
	made := newTaken(all)
	for _, next := range b.drawn(all) {
		b.measured(ctx, made, next, p)
		r.Experiments = made.results()
		r.Seconds = time.Since(began).Seconds()
		// What was measured is kept, should the run be ended before its time.
		if err := r.WriteJSON(cfg.JSON); err != nil {
			return r, err
		}
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
	}
	return r, write(r, cfg, out)
}

func servers(cfg Config) string {
	switch {
	case cfg.Given != nil:
		return "servers of your own"
	case cfg.World != "":
		return "the sandbox, on the same machine, in the world " + cfg.World
	default:
		return "the sandbox, on the same machine"
	}
}

// show writes what an earlier run measured.
func show(cfg Config, out io.Writer) (*results.Result, error) {
	r, err := results.Read(cfg.From)
	if err != nil {
		return nil, err
	}
	return r, write(r, cfg, out)
}

// write prints the tables and writes the files that are named.
func write(r *results.Result, cfg Config, out io.Writer) error {
	fmt.Fprintf(out, "\n%s\n", r.Markdown())
	for _, file := range []struct {
		path  string
		write func(string) error
	}{{cfg.JSON, r.WriteJSON}, {cfg.Page, r.WritePageFile}, {cfg.Update, r.Update}} {
		if file.path == "" {
			continue
		}
		if err := file.write(file.path); err != nil {
			return err
		}
		fmt.Fprintln(out, "wrote", file.path)
	}
	return nil
}

// measure makes a round, in a time that is far beyond the usual.
func (b *bench) measure(ctx context.Context, round round) ([]results.Point, error) {
	most := max(leastPatience, 20*round.usual)
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("it took longer than %v", most))
	defer cancel()
	return round.measure(ctx, b)
}
