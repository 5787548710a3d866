package session

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLock_TheDeadlineIsAMarginBeforeTheLock(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		lockedUntil time.Duration // from now by the broker's clock
		margin      time.Duration
		want        time.Duration
	}{
		{"a usual lock", 30 * time.Second, 2 * time.Second, 28 * time.Second},
		{"a lock hardly longer than the margin keeps two thirds", 3 * time.Second, 2 * time.Second, 2 * time.Second},
		{"a broker whose clock is far behind gives the shortest lock", -time.Hour, time.Second, 4 * time.Second},
		{"a broker whose clock is far ahead gives the longest lock", time.Hour, time.Second, 5*time.Minute - time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var expired time.Duration
				l := newLock(began.Add(tt.lockedUntil), tt.margin, func() { expired = time.Since(began) })
				deadline, err := l.end()
				if got := deadline.Sub(began); err != nil || got != tt.want {
					t.Errorf("deadline: got %s and %v, want %s", got, err, tt.want)
				}
				time.Sleep(tt.want)
				synctest.Wait()
				if _, err := l.end(); err == nil {
					t.Error("at the deadline: got nil, want errLockEnds")
				}
				if expired != tt.want {
					t.Errorf("expired after %s, want %s", expired, tt.want)
				}
			})
		})
	}
}
