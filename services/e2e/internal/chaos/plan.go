package chaos

import (
	"iter"
	"math/rand/v2"
	"time"
)

// stroke is one deed of the plan.
type stroke struct {
	at    time.Duration
	deed  deed
	lasts time.Duration
	// draw decides what the deed leaves open.
	draw uint64
}

// planned draws a campaign's strokes from its seed, in the order of their times,
// without end.
func planned(cfg Config) iter.Seq[stroke] {
	all := deeds()
	total := 0
	for _, d := range all {
		total += d.weight
	}
	return func(yield func(stroke) bool) {
		rng := rand.New(rand.NewPCG(cfg.Seed, 0x6368616f73))
		for at := between(rng, cfg.Every); ; at += between(rng, cfg.Every) {
			roll := rng.IntN(total)
			i := 0
			for ; roll >= all[i].weight; i++ {
				roll -= all[i].weight
			}
			d := all[i]
			lasts := d.shortest + time.Duration(rng.Int64N(int64(d.longest-d.shortest)+1))
			if !yield(stroke{at: at, deed: d, lasts: lasts, draw: rng.Uint64()}) {
				return
			}
		}
	}
}

// between is a time around the mean: from half to one and a half of it.
func between(rng *rand.Rand, mean time.Duration) time.Duration {
	return mean/2 + time.Duration(rng.Int64N(int64(mean)+1))
}
