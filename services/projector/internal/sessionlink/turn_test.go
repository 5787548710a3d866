package sessionlink

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// queue are receivers that wait for their turns, in a bubble.
type queue struct {
	*pace
	carried atomic.Int64

	gotMu sync.Mutex
	got   []int // guarded by gotMu
}

func newQueue() *queue {
	q := &queue{}
	q.pace = newPace(testLinger, &q.carried)
	return q
}

// enters has another receiver wait for a turn to ask for bytes.
func (q *queue) enters(ctx context.Context, n int, bytes int64) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := q.enter(ctx, 1, bytes)
		if err == nil {
			q.gotMu.Lock()
			q.got = append(q.got, n)
			q.gotMu.Unlock()
		}
		ended <- err
	}()
	synctest.Wait()
	return ended
}

func (q *queue) want(t *testing.T, when string, want ...int) {
	t.Helper()
	synctest.Wait()
	q.gotMu.Lock()
	defer q.gotMu.Unlock()
	if got := slices.Sorted(slices.Values(q.got)); !slices.Equal(got, want) {
		t.Errorf("%s: %v had their turns, want %v", when, got, want)
	}
}

// What is asked for together is no more than comes in good time, however many ask, and
// who came first goes first.
func TestTurn_ComesInOrderAsFarAsTheWindowGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		all := q.window()
		q.enters(t.Context(), 1, 2*all) // one always may
		q.enters(t.Context(), 2, all/2)
		q.enters(t.Context(), 3, all/2)
		q.enters(t.Context(), 4, 1)
		q.want(t, "while more than fits is under way", 1)
		q.ahead(2*all, 0)
		q.want(t, "when it has come", 1, 2, 3)
		q.ahead(all/2, 0)
		q.want(t, "when half of that has come", 1, 2, 3, 4)
	})
}

func TestTurn_OfOneThatLeavesGoesToTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		all := q.window()
		q.enters(t.Context(), 1, all/2)
		ctx, leave := context.WithCancelCause(t.Context())
		left := q.enters(ctx, 2, all)
		q.enters(t.Context(), 3, all/2)
		q.want(t, "behind a large one", 1)
		gone := errors.New("gone")
		leave(gone)
		q.want(t, "when that has left", 1, 3)
		if err := <-left; !errors.Is(err, gone) {
			t.Errorf("who left got %v, want its cause", err)
		}
	})
}

// What is expected may not come: nobody waits for it for ever, nor do all go at once.
func TestTurn_IsNotWaitedForOnAnIdleConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		for n := range 3 {
			q.enters(t.Context(), n, q.window())
		}
		pass(3 * idleTime / 4)
		q.carried.Add(1)
		pass(3 * idleTime / 4)
		q.want(t, "while something comes", 0)
		pass(idleTime / 2)
		q.want(t, "when nothing has for a while", 0, 1)
		pass(idleTime + idleTime/4)
		q.want(t, "and a while later", 0, 1, 2)
	})
}
