package relay

import (
	"testing"
	"time"
)

// TestLoad_StruckMessagesTogetherHaveTheirTurnsAThirdOfTheTime has two, with turns that
// fail after a quarter of a minute.
func TestLoad_StruckMessagesTogetherHaveTheirTurnsAThirdOfTheTime(t *testing.T) {
	t.Parallel()
	const took = 15 * time.Second
	l, now, turn := load{timeout: took}, time.Now(), demand{bytes: mebibyte, turn: true}
	if got := l.hold(now, turn); got > 0 {
		t.Errorf("the first has to wait %v, want none", got)
	}
	first := l.begin(now, ticket{}, turn)
	if got := l.hold(now, turn); got != longestPause {
		t.Errorf("beside the first the other one waits %v, want that it waits for its end", got)
	}
	l.end(now.Add(took), first, false)
	if got := l.hold(now.Add(took), turn); got != 2*took {
		t.Errorf("behind the first the other one waits %v, want %v", got, 2*took)
	}
	if got := l.hold(now.Add(took), demand{bytes: mebibyte}); got > 0 {
		t.Errorf("one that is not struck has to wait %v, want none", got)
	}
	second := l.begin(now.Add(3*took), ticket{}, turn)
	l.end(now.Add(4*took), second, true)
	if got := l.hold(now.Add(4*took), turn); got > 0 {
		t.Errorf("behind one that was accepted the next one waits %v, want none", got)
	}
}

// TestLoad_NoMoreGoesBesideOthersThanMayBeUnderWay has a first one that is larger.
func TestLoad_NoMoreGoesBesideOthersThanMayBeUnderWay(t *testing.T) {
	t.Parallel()
	l, now := load{timeout: 15 * time.Second}, time.Now()
	large, small := demand{bytes: mebibyte, beside: true}, demand{bytes: mebibyte / 4, beside: true}
	first := l.begin(now, ticket{}, large)
	if got := l.hold(now, small); got != longestPause {
		t.Errorf("beside a large one the next one waits %v, want that it waits for its end", got)
	}
	if !l.fits(now, demand{bytes: mebibyte}) {
		t.Error("one that does not go beside others has to wait for the large one, want that it does not")
	}
	l.end(now, first, false)
	l.begin(now, ticket{}, small)
	if got := l.hold(now, small); got > 0 {
		t.Errorf("beside a small one the next one waits %v, want none", got)
	}
}
