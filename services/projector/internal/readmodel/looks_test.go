package readmodel

import (
	"testing"
	"testing/synctest"
	"time"
)

// However many writes wait, a store looks for idle transactions once in a while.
func TestLooks_AreDueOnceInAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l looks
		var due []bool
		for range 2 {
			due = append(due, l.due(), l.due())
			time.Sleep(conflictTime - 1) //nolint:forbidigo // in a bubble
			due = append(due, l.due())
			time.Sleep(time.Nanosecond) //nolint:forbidigo // in a bubble
		}
		for i, got := range due {
			if want := i%3 == 0; got != want {
				t.Errorf("look %d: due is %t, want %t", i, got, want)
			}
		}
	})
}
