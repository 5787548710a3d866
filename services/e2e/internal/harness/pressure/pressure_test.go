package pressure

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestStall_IsWhatTheKernelSaysUpToABound(t *testing.T) {
	t.Parallel()
	const most = 5 * time.Second
	before := parse([]byte("some avg10=0.03 avg60=0.52 avg300=0.70 total=4193821\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n"))
	tests := []struct {
		name string
		now  string
		want time.Duration
	}{
		{name: "nothing waited", now: "some avg10=0.00 avg60=0.00 avg300=0.00 total=4193821\n"},
		{name: "a while", now: "some avg10=9.00 avg60=0.00 avg300=0.00 total=5193821\n", want: time.Second},
		{name: "longer than the bound", now: "some avg10=99.00 avg60=0.00 avg300=0.00 total=14193821\n", want: most},
		{name: "no such line", now: "full avg10=99.00 avg60=0.00 avg300=0.00 total=14193821\n", want: most},
		{name: "a figure that is none", now: "some avg10=99.00 total=99999999999999999999\n", want: most},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := parse([]byte(tt.now)).Since(before, most); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestWithTimeout_EndsNotBeforeItsTimeNorLaterThanAllowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := WithTimeout(t.Context(), 12*time.Second, time.Minute)
		defer cancel()
		<-ctx.Done()
		if took := time.Since(began); took < 12*time.Second || took > 72*time.Second+look {
			t.Errorf("ended after %v, want 12s to 72s", took)
		}
		if err := context.Cause(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that its time is over", err)
		}
	})
}
