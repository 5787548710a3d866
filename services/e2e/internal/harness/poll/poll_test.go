package poll

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestPoll_UntilAsksUntilTheAnswerIsYes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		err := Until(t.Context(), "three", func(context.Context) (bool, string) {
			asked++
			return asked == 3, ""
		})
		if err != nil || asked != 3 {
			t.Errorf("got %v after %d questions, want nil after 3", err, asked)
		}
	})
}

func TestPoll_UntilSaysWhatItWaitedForAndWhatItSaw(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := Until(ctx, "a miracle", func(context.Context) (bool, string) { return false, "nothing" })
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "a miracle") || !strings.Contains(err.Error(), "nothing") {
			t.Errorf("got %v, want the deadline, what was awaited and what was seen", err)
		}
	})
}
