package readmodel

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// usualParkedBytes are for a process that says nothing else: a command, which may
// run in the container of a projector.
const usualParkedBytes = 8 << 20

// pagesAtOnce is how many pages there is room for at least, unless one message of
// a page is more than its part.
const pagesAtOnce = 4

// room bounds the bytes of parked messages that are read and not yet dealt with,
// in all redrives of a process together. A message that weighs more than all is
// read while nothing else is.
type room struct {
	total int64
	free  *semaphore.Weighted

	mu         sync.Mutex
	used, most int64 // guarded by mu
}

func newRoom(total int64) *room {
	if total == 0 {
		total = usualParkedBytes
	}
	return &room{total: total, free: semaphore.NewWeighted(total)}
}

// page is how many of the first messages are read together, and what they weigh.
// There is one at least where there are any.
func (r *room) page(weights []int64) (n int, sum int64) {
	for _, weight := range weights {
		if n > 0 && sum+weight > r.total/pagesAtOnce {
			break
		}
		n, sum = n+1, sum+weight
	}
	return n, sum
}

// take waits until there is room for bytes. What it returns gives them back, once.
func (r *room) take(ctx context.Context, bytes int64) (giveBack func(), err error) {
	share := min(bytes, r.total)
	if err := r.free.Acquire(ctx, share); err != nil {
		return nil, context.Cause(ctx)
	}
	r.note(bytes)
	return sync.OnceFunc(func() {
		r.note(-bytes)
		r.free.Release(share)
	}), nil
}

func (r *room) note(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used += bytes
	r.most = max(r.most, r.used)
}

// ParkedBytes is how many bytes of parked messages are read and not yet dealt with,
// and how many there were at most.
func (s *Parked) ParkedBytes() (now, most int64) {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	return s.room.used, s.room.most
}
