package relay

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestSaves_SaysWhatIsNotStoredForTheLongestTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s saves
		first, second := errors.New("first"), errors.New("second")
		s.note("b", first)
		time.Sleep(time.Second)
		s.note("a", second)
		if got := s.longest(); !errors.Is(got.Err, first) || time.Since(got.Since) != time.Second {
			t.Errorf("got %v since %s, want the first, a second ago", got.Err, got.Since)
		}
		s.note("b", nil)
		if got := s.longest(); !errors.Is(got.Err, second) {
			t.Errorf("got %v, want the second, as the first is stored", got.Err)
		}
	})
}
