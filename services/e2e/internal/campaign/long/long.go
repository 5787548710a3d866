package long

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/harness/cluster"
	"changerelay/services/e2e/internal/harness/commandline"
)

// Config says what a run does.
type Config struct {
	// Seed is that of the first campaign; each other one has the next.
	Seed     uint64
	Duration time.Duration
	// Rate is how many events a steady phase writes a second.
	Rate int
	// Update is a document whose section between marks becomes the report; empty for none.
	Update string
	// Dir takes logs and reports; empty makes one under .run.
	Dir string
}

// Parse reads the command line. Every problem is reported at once.
func Parse(args []string, usage io.Writer) (Config, error) {
	c := Config{}
	flags := flag.NewFlagSet("long", flag.ContinueOnError)
	flags.Uint64Var(&c.Seed, "seed", 1, "makes the plans, the settings and the events; each campaign has the next")
	flags.DurationVar(&c.Duration, "duration", time.Hour, "begin no campaign after so long")
	flags.IntVar(&c.Rate, "rate", 1000, "events written a `second` in a steady phase")
	flags.StringVar(&c.Update, "update", "", "write the report into this `file` between its marks: docs/proofs.md")
	flags.StringVar(&c.Dir, "dir", "", "keep logs and reports in this `directory` in place of one under .run")
	err := commandline.Parse(flags, args, usage)
	if err != nil {
		return Config{}, err
	}
	var errs []error
	if c.Duration < time.Second {
		errs = append(errs, fmt.Errorf("--duration is %v, below 1s", c.Duration))
	}
	if c.Rate < 1 {
		errs = append(errs, fmt.Errorf("--rate is %d, below 1", c.Rate))
	}
	if flags.NArg() > 0 {
		errs = append(errs, fmt.Errorf("there is no argument %q", flags.Arg(0)))
	}
	return c, errors.Join(errs...)
}

// done is a campaign that was run.
type done struct {
	leg
	*report.Report
}

// Run runs campaigns until the time is over, in the root of the repository, and says
// whether all passed. What a campaign says goes to a file of its own.
func Run(ctx context.Context, cfg Config, out io.Writer) (passed bool, err error) {
	began := time.Now()
	if cfg.Dir == "" {
		if cfg.Dir, err = cluster.RunDir("", "long"); err != nil {
			return false, err
		}
	}
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return false, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return false, fmt.Errorf("make directory of the run: %w", err)
	}
	var all []done
	passed = true
	for n := uint64(0); time.Since(began) < cfg.Duration && ctx.Err() == nil; n++ {
		l := legs(cfg, n)
		fmt.Fprintf(out, "%7.1fs  %s, seed %d\n", time.Since(began).Seconds(), l.name, l.seed)
		r, err := l.log(ctx, filepath.Join(cfg.Dir, fmt.Sprintf("leg-%d", n+1)))
		if err != nil {
			return false, err
		}
		fmt.Fprintf(out, "%7.1fs  passed: %t, %d faults, logs in %s\n", time.Since(began).Seconds(), r.Passed, len(r.Faults), r.Dir)
		passed = passed && r.Passed
		all = append(all, done{l, r})
	}
	text := summary(cfg, began, time.Since(began), all)
	fmt.Fprintf(out, "\n%s", text)
	if err := os.WriteFile(filepath.Join(cfg.Dir, "report.md"), []byte(text), 0o644); err != nil {
		return passed, fmt.Errorf("write report: %w", err)
	}
	if cfg.Update == "" || ctx.Err() != nil {
		return passed, context.Cause(ctx)
	}
	return passed, report.Update(cfg.Update, beginMark, endMark, text)
}

// log runs the campaign, with what it says and its report in a directory of its own.
func (l leg) log(ctx context.Context, dir string) (*report.Report, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make directory of a campaign: %w", err)
	}
	file, err := os.Create(filepath.Join(dir, "campaign.log"))
	if err != nil {
		return nil, fmt.Errorf("log a campaign: %w", err)
	}
	defer file.Close()
	r, _ := l.run(ctx, file) // why it could not come to its end is in the report
	return r, r.Publish(file, filepath.Join(dir, "report.json"))
}
