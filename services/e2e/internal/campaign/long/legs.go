package long

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"changerelay/services/e2e/internal/campaign/chaos"
	"changerelay/services/e2e/internal/campaign/crashpoint"
	"changerelay/services/e2e/internal/check/report"
	"changerelay/services/e2e/internal/harness/cluster"
)

// leg is one campaign of a run.
type leg struct {
	name string
	seed uint64
	run  func(ctx context.Context, out io.Writer) (*report.Report, error)
}

const (
	// shares is into how many legs the time of a run is divided.
	shares = 12
	// shortest is how long faults are injected in a leg at least.
	shortest = 15 * time.Second
	// perKill is about what one kill at each crash point takes.
	perKill = 60 * time.Second
	// settle bounds recovery and drain of a leg.
	settle = 4 * time.Minute
	// A read database is put back a few times, of so many events a second at most: all that
	// came since the first time is sent again.
	restored, restoredEvery, restoredRate = 30 * time.Second, 6 * time.Second, 150
)

// legs are the campaigns of a run, in their order, again and again. The seed says with
// which of them a run begins, so that short ones do not all do the same.
func legs(cfg Config, n uint64) leg {
	lasts := max(cfg.Duration/shares, shortest)
	seed := cfg.Seed + n
	dir := filepath.Join(cfg.Dir, fmt.Sprintf("leg-%d", n+1))
	faults := chaos.Config{
		Seed: seed, Duration: lasts, Every: 1500 * time.Millisecond, Rate: cfg.Rate, Publishers: 2, Projectors: 3, Lease: 3 * time.Second, Settle: settle, Dir: dir,
	}
	l := leg{seed: seed}
	disturb := func(name, operators string) leg {
		l.name, faults.Operators = name, operators
		l.run = func(ctx context.Context, out io.Writer) (*report.Report, error) {
			return chaos.Run(ctx, ctx, faults, out)
		}
		return l
	}
	switch seed % shares {
	case 2, 8:
		return disturb("operators' mistakes", "all")
	case 0:
		faults.Duration, faults.Every, faults.Rate = min(lasts, restored), restoredEvery, min(cfg.Rate, restoredRate)
		return disturb("a read database of before", "read database")
	case 10:
		return disturb("what is set aside, and groups", "parked,halts,moved,group")
	case 4:
		l.name = "crash points"
		l.run = func(ctx context.Context, out io.Writer) (*report.Report, error) {
			return crashpoint.Run(ctx, crashpoint.Config{Seed: seed, Kills: max(1, int(lasts/perKill)), Dir: dir}, out)
		}
		return l
	case 6:
		l.name, l.run = "upgrades", upgrades
		return l
	}
	return disturb("faults", "")
}

// upgrades runs the last release beside today's programs.
func upgrades(ctx context.Context, out io.Writer) (*report.Report, error) {
	began := time.Now()
	cmd := cluster.Group(ctx, "go", "test", "-count=1", "-v", "-timeout", "15m", "-run", "TestUpgrade_", "./services/e2e/scenario")
	cmd.Env = append(os.Environ(), "UPGRADES=1")
	var said bytes.Buffer
	both := io.MultiWriter(out, &said)
	cmd.Stdout, cmd.Stderr = both, both
	r := &report.Report{Title: "Upgrades", Started: began.UTC(), Setup: []report.Fact{{Name: "settings", Text: "those of each test"}}}
	r.Checks = judgeUpgrades(cmd.Run(), said.String())
	r.Seconds = time.Since(began).Seconds()
	r.Judge()
	return r, nil
}

// judgeUpgrades judges tests by how they ended and what they said: those that were not run
// have shown nothing. Without the history of the last release none can be.
func judgeUpgrades(err error, said string) []report.Check {
	const notRun = "upgrades that were not run"
	failed, passed := 0.0, 0
	if err != nil {
		failed = 1
	}
	var skipped []string
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "--- PASS: ") {
			passed++
		}
		if test, is := strings.CutPrefix(line, "--- SKIP: "); is {
			skipped = append(skipped, strings.TrimSpace(test))
		}
	}
	checks := []report.Check{report.AtMost("upgrades that failed", failed, 0, report.Count, fmt.Sprint(err))}
	if failed == 0 && passed == 0 {
		return append(checks, report.Impossible(notRun, 0, report.Count, "no test was run"))
	}
	return append(checks, report.AtMost(notRun, float64(len(skipped)), 0, report.Count, skipped...))
}
