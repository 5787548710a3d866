package servicebus

import (
	"testing"
	"time"
)

func TestRate_AsksForWhatComesInTimeAndWaitsForIt(t *testing.T) {
	t.Parallel()
	var r rate
	const each = 50 << 10
	if n := r.fits(100, each); n != 100 {
		t.Errorf("before anything has come: fits %d, want all", n)
	}
	if wait := r.takes(100 << 10); wait > 10*time.Millisecond {
		t.Errorf("before anything has come: waits %s, want hardly anything", wait)
	}
	for range 30 {
		r.note(10*each, 500*time.Millisecond) // 1,000 KiB a second
	}
	n := r.fits(100, each)
	if n < 4 || n > 6 {
		t.Errorf("on a narrow link: fits %d, want about 5", n)
	}
	if wait := r.takes(int64(n) * each); wait < receiveTime || wait > 2*receiveTime {
		t.Errorf("on a narrow link: waits %s for them, want up to twice what they take", wait)
	}
	r.note(rateBytes-1, time.Hour)
	if r.fits(100, each) != n {
		t.Error("a few bytes in a long time have told of the rate")
	}
}
