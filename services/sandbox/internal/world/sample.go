package world

import (
	"math"
	"math/rand/v2"
	"time"
)

// z99 is how many standard deviations the 99th percentile is above the median.
const z99 = 2.326

// Draw draws a time: log-normal through the two percentiles, and no more than ten times the higher.
func (l Latency) Draw() time.Duration {
	if l.P50 <= 0 {
		return 0
	}
	spread := math.Log(float64(l.P99)/float64(l.P50)) / z99
	drawn := float64(l.P50) * math.Exp(rand.NormFloat64()*spread)
	return time.Duration(min(drawn, 10*float64(l.P99)))
}
