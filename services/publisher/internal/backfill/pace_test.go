package backfill

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPace_TheRateBoundsACopy(t *testing.T) {
	t.Parallel()
	for _, rate := range []int{1, 7, 100, 5000} {
		synctest.Test(t, func(t *testing.T) {
			p := pace{rate: rate}
			began, taken := time.Now(), 0
			for taken < 10*rate {
				n, err := p.take(t.Context(), 10*rate-taken)
				if err != nil {
					t.Fatal(err)
				}
				taken += n
			}
			if took := time.Since(began); took < 9*time.Second || took > 11*time.Second {
				t.Errorf("at %d a second %d documents took %s, want about 10s", rate, taken, took)
			}
		})
	}
}
