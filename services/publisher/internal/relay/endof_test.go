package relay

import (
	"errors"
	"testing"
)

func TestRelay_TheEndOfASourceIsNotReportedBeforeAllThatItGaveIsFinished(t *testing.T) {
	t.Parallel()
	end := errors.New("nothing more")
	r := New(Config{MaxInFlight: 8, MaxInFlightBytes: 100}, Deps{})
	for n := range 3 {
		number, _ := r.watermark.tryBegin(point(n), 1)
		r.given++
		if n != 1 {
			r.watermark.finish(number)
		}
	}
	unfinished, ok := errors.AsType[*UnfinishedError](r.endOf(end))
	if !ok || unfinished.Given != 3 || unfinished.Finished != 1 || errors.Is(unfinished, end) {
		t.Errorf("the end is %v with one of three unfinished, want an UnfinishedError in its place", unfinished)
	}
	r.watermark.finish(1)
	if err := r.endOf(end); !errors.Is(err, end) {
		t.Errorf("the end is %v with all finished, want %v", err, end)
	}
	if err := r.endOf(nil); err != nil {
		t.Errorf("the end is %v where the source has not ended, want nil", err)
	}
}
