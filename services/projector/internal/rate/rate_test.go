package rate

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestMeter_SaysTheRateOfTheLastTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var counter atomic.Int64
		m := New(counter.Load)
		if got := m.PerSecond(); got != 0 {
			t.Errorf("before the first sample: got %v, want 0", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var sampling sync.WaitGroup
		sampling.Go(func() { m.Run(ctx) })
		for _, step := range []struct {
			perSecond int64
			seconds   int
			want      float64
		}{{100, 5, 100}, {100, 20, 100}, {0, 5, 50}, {0, 5, 0}, {40, 10, 40}} {
			for range step.seconds {
				time.Sleep(every / 2)
				counter.Add(step.perSecond)
				time.Sleep(every / 2)
				synctest.Wait()
			}
			if got := m.PerSecond(); got != step.want {
				t.Errorf("after %d s at %d: got %v, want %v", step.seconds, step.perSecond, got, step.want)
			}
		}
		cancel()
		sampling.Wait()
	})
}
