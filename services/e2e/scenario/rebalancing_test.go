package scenario

import (
	"math/rand/v2"
	"strings"
	"testing"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/cluster"
)

// rebalancingSeed draws who comes and who goes, and how.
const rebalancingSeed = 8

// Between one and eight projectors are at work while events are written; they
// are started, killed and asked to stop. No two ever work on one session.
func TestRebalancing_NoSessionIsWorkedOnByTwoWhileProjectorsComeAndGo(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *cluster.Config) { c.Projectors = 8 })
	rng := rand.New(rand.NewPCG(rebalancingSeed, 0))
	t.Logf("seed %d", rebalancingSeed)
	stop := r.writing(t, rate)
	for range 16 {
		r.changeOne(t, rng)
		await(t, "the rest to work on", r.appliedMore(300))
	}
	stop()
	r.judge(t)

	history := r.witness.Applies.History()
	processes := map[string]bool{}
	for _, a := range history {
		process, _, found := strings.Cut(a.Hold, "/")
		if !found {
			t.Fatalf("a write of %s does not say under which hold: got %q", a.Document, a.Hold)
		}
		processes[process] = true
	}
	if got := validate.Takeovers(history); len(processes) <= 8 || got < 100 {
		t.Errorf("got %d processes and %d takeovers of documents, want more than 8 and at least 100, or nothing was judged", len(processes), got)
	}
}

// changeOne starts a projector that does not run, or ends one that does, by
// force or by asking, unless it is the last.
func (r *relay) changeOne(t *testing.T, rng *rand.Rand) {
	t.Helper()
	running := 0
	for _, p := range r.Projectors {
		if p.Running() {
			running++
		}
	}
	p, byForce := r.Projectors[rng.IntN(len(r.Projectors))], rng.IntN(2) == 0
	switch {
	case !p.Running():
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		if err := p.AwaitUp(within(t)); err != nil {
			t.Fatal(err)
		}
	case running == 1:
	case byForce:
		p.Kill()
	default:
		if errs := cluster.Stop(within(t), p); errs != nil {
			t.Fatal(errs)
		}
	}
}
