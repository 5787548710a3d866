package pressure

import (
	"testing"
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
