package stream

import (
	"errors"
	"testing"

	"changerelay/services/publisher/internal/changestream"
	"changerelay/services/publisher/internal/checkpoint"
)

func TestCopy_IsCalledTooSlowOnlyWhereTheHistorySinceItsBeginningIsLost(t *testing.T) {
	t.Parallel()
	done, under := &checkpoint.Copy{Done: true}, &checkpoint.Copy{}
	for name, tt := range map[string]struct {
		place  checkpoint.Place
		reason changestream.Reason
		want   bool
	}{
		"a copy that is done":                 {checkpoint.Place{Copy: done}, changestream.HistoryLost, true},
		"a change that is too large after it": {checkpoint.Place{Copy: done}, changestream.ChangeTooLarge, false},
		"a token after it that is unusable":   {checkpoint.Place{Copy: done}, changestream.TokenUnusable, false},
		"a stream that has been read since":   {checkpoint.Place{Copy: done, Token: []byte("t")}, changestream.HistoryLost, false},
		"a copy under way":                    {checkpoint.Place{Copy: under}, changestream.HistoryLost, false},
		"no copy":                             {checkpoint.Place{}, changestream.HistoryLost, false},
	} {
		why := &changestream.HaltError{Reason: tt.reason, Err: errors.New("said the server")}
		if got := copyTooSlow(tt.place, why); got != tt.want {
			t.Errorf("%s: too slow = %v, want %v", name, got, tt.want)
		}
	}
}
