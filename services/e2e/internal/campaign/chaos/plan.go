package chaos

import (
	"iter"
	"math/rand/v2"
	"time"
)

// injection is one fault of the plan.
type injection struct {
	at    time.Duration
	fault fault
	lasts time.Duration
	// draw decides what the fault leaves open.
	draw uint64
}

// planned draws a campaign's injections from its seed, in the order of their times,
// without end: each kind once, and then as often as its weight has it.
func planned(cfg Config) iter.Seq[injection] {
	all := cfg.kinds()
	total := 0
	for _, d := range all {
		total += d.weight
	}
	return func(yield func(injection) bool) {
		rng := rand.New(rand.NewPCG(cfg.Seed, 0x6368616f73))
		first := rng.Perm(len(all))
		for at := between(rng, cfg.Every); ; at += between(rng, cfg.Every) {
			i := 0
			if len(first) > 0 {
				i, first = first[0], first[1:]
			} else {
				for roll := rng.IntN(total); roll >= all[i].weight; i++ {
					roll -= all[i].weight
				}
			}
			d := all[i]
			lasts := d.shortest + time.Duration(rng.Int64N(int64(d.longest-d.shortest)+1))
			if !yield(injection{at: at, fault: d, lasts: lasts, draw: rng.Uint64()}) {
				return
			}
		}
	}
}

// between is a time around the mean: from half to one and a half of it.
func between(rng *rand.Rand, mean time.Duration) time.Duration {
	return mean/2 + time.Duration(rng.Int64N(int64(mean)+1))
}
