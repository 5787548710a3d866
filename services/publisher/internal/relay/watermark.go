package relay

import (
	"cmp"
	"context"
	"sync"
	"time"

	"changerelay/pkg/contract"
)

// watermark knows which changes are unfinished, and up to where all are
// finished. It also is the window: it bounds how many there may be.
//
// Invariant: the changes numbered first..next-1 are in the ring, the one
// numbered first is unfinished, and prefix is the point right before it.
type watermark struct {
	maxBytes int64

	mu     sync.Mutex
	ring   []mark // by number modulo its length
	first  uint64
	next   uint64
	bytes  int64     // of unfinished changes
	full   time.Time // since when the next change waits for room; zero while none does
	prefix Point
	idle   bool // whether prefix is the point of an empty read
	moves  uint64

	freed chan struct{} // holds one token when there may be room again
}

type mark struct {
	point    Point
	size     int64
	finished bool
}

func newWatermark(maxCount int, maxBytes int64) *watermark {
	return &watermark{
		maxBytes: maxBytes,
		ring:     make([]mark, maxCount),
		freed:    make(chan struct{}, 1),
	}
}

// begin adds a change at the end and returns its number. It waits while the
// window is full; a change larger than the whole window goes alone. It is for
// one goroutine.
func (w *watermark) begin(ctx context.Context, point Point, size int64) (uint64, error) {
	for {
		number, ok := w.tryBegin(point, size)
		if ok {
			return number, nil
		}
		select {
		case <-w.freed:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

func (w *watermark) tryBegin(point Point, size int64) (uint64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next-w.first == uint64(len(w.ring)) || w.bytes > 0 && w.bytes+size > w.maxBytes {
		w.full = cmp.Or(w.full, time.Now())
		return 0, false
	}
	w.full = time.Time{}
	number := w.next
	w.next++
	w.bytes += size
	*w.at(number) = mark{point: point, size: size}
	return number, true
}

// finish marks a change as finished. Each is finished once, in any order.
func (w *watermark) finish(number uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.at(number)
	if number < w.first || number >= w.next || m.finished {
		panic("relay: a change was finished that is not in the window")
	}
	m.finished = true
	w.bytes -= m.size
	for w.first < w.next && w.at(w.first).finished {
		if point := w.at(w.first).point; point.Token != nil || point.Position != "" {
			w.prefix, w.idle = point, false
			w.moves++
		}
		*w.at(w.first) = mark{}
		w.first++
	}
	select {
	case w.freed <- struct{}{}:
	default:
	}
}

// idleAt moves the prefix to a point that the source reached without a change,
// unless something is unfinished: that stands before the point.
func (w *watermark) idleAt(point Point) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first != w.next {
		return
	}
	w.prefix, w.idle = point, true
	w.moves++
}

// progress is a reading of the watermark.
type progress struct {
	Point
	idle  bool
	moves uint64 // differs between two readings when the prefix moved
}

func (w *watermark) read() progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	return progress{Point: w.prefix, idle: w.idle, moves: w.moves}
}

// unfinished returns how many changes are in the window, and their bytes.
func (w *watermark) unfinished() (count int, bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int(w.next - w.first), w.bytes
}

// waits returns since when the next change waits for room, and where the first one in the
// window stands; nothing while none waits.
func (w *watermark) waits() (since time.Time, first contract.Position) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.full.IsZero() || w.first == w.next {
		return time.Time{}, ""
	}
	return w.full, w.at(w.first).point.Position
}

// finished returns how many changes are finished in one run from the first one on.
func (w *watermark) finished() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first
}

func (w *watermark) at(number uint64) *mark { return &w.ring[number%uint64(len(w.ring))] }
