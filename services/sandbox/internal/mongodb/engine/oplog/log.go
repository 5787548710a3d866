package oplog

import (
	"context"
	"sync"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// chunkEntries is how many entries are stored side by side.
const chunkEntries = 512

// Log is the bounded history of all changes. Entries are numbered without
// gaps; the oldest are given up when the bounds are passed.
//
// The engine appends under its own lock; readers need none but mu. Where both
// are held, Engine.mu is taken first.
type Log struct {
	maxEntries int
	maxBytes   int

	mu     sync.RWMutex // guards what follows
	chunks [][]Entry
	// base is the number of the first place in chunks, first that of the oldest
	// entry, next that of the one to come.
	base, first, next uint64
	// applied is the end of what is durable, visible that of what a majority has,
	// which bounds what change streams see; their times are those of the last entry
	// below.
	applied, visible         uint64
	appliedTime, visibleTime Timestamp
	bytes                    int
	// cut is the time of the last entry given up, 0 before the first.
	cut Timestamp
	// grown is closed, and forgotten, when more is applied or visible.
	grown chan struct{}
}

// New makes an empty log that keeps at least maxEntries or maxBytes, whichever
// is reached first.
func New(maxEntries, maxBytes int) *Log {
	return &Log{maxEntries: maxEntries, maxBytes: maxBytes}
}

// Append adds entries, which readers see when Apply or Advance is called. It
// returns the number after the last.
func (l *Log) Append(entries ...Entry) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range entries {
		l.push(entries[i])
	}
	l.trim()
	return l.next
}

func (l *Log) push(e Entry) {
	last := len(l.chunks) - 1
	if last < 0 || len(l.chunks[last]) == chunkEntries {
		l.chunks = append(l.chunks, make([]Entry, 0, chunkEntries))
		last++
	}
	l.chunks[last] = append(l.chunks[last], e)
	l.bytes += e.size()
	l.next++
}

// trim gives up the oldest entries while the rest alone fills a bound.
func (l *Log) trim() {
	for l.first+1 < l.next {
		oldest := l.at(l.first)
		size := oldest.size()
		if int(l.next-l.first)-1 < l.maxEntries && l.bytes-size < l.maxBytes {
			return
		}
		l.giveUp(oldest)
	}
}

// giveUp forgets the oldest entry.
func (l *Log) giveUp(oldest *Entry) {
	l.cut = oldest.Time
	l.bytes -= oldest.size()
	*oldest = Entry{}
	l.first++
	if l.first-l.base == chunkEntries {
		l.chunks[0] = nil
		l.chunks = l.chunks[1:]
		l.base = l.first
	}
}

// Apply tells that the entries below a number are durable.
func (l *Log) Apply(to uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.apply(to)
}

func (l *Log) apply(to uint64) {
	if to <= l.applied {
		return
	}
	l.applied = to
	if to > l.first {
		l.appliedTime = l.at(to - 1).Time
	}
	l.tell()
}

// Advance tells that a majority has the entries below a number, which are durable then.
func (l *Log) Advance(to uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if to <= l.visible {
		return
	}
	l.apply(to)
	l.visible = to
	if to > l.first {
		l.visibleTime = l.at(to - 1).Time
	}
	l.tell()
}

// tell wakes those that wait for more.
func (l *Log) tell() {
	if l.grown != nil {
		close(l.grown)
		l.grown = nil
	}
}

// at gives an entry that is there.
func (l *Log) at(n uint64) *Entry {
	offset := n - l.base
	return &l.chunks[offset/chunkEntries][offset%chunkEntries]
}

// Read gives up to most entries from number n on, and the number after them.
// Reading before the oldest entry is the error of a lost history.
func (l *Log) Read(dst []Entry, n uint64, most int) ([]Entry, uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if n < l.first {
		return dst, n, ErrHistoryLost()
	}
	dst, n = l.read(dst, n, l.visible, most)
	return dst, n, nil
}

func (l *Log) read(dst []Entry, n, end uint64, most int) ([]Entry, uint64) {
	for ; n < end && most > 0; most-- {
		dst = append(dst, *l.at(n))
		n++
	}
	return dst, n
}

// ReadOldest gives up to most entries between the numbers from and end, leaving
// out those that have been given up, and the number after them.
func (l *Log) ReadOldest(dst []Entry, from, end uint64, most int) ([]Entry, uint64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.read(dst, max(from, l.first), end, most)
}

// Wait returns when an entry numbered n or above is visible, or ctx ends.
func (l *Log) Wait(ctx context.Context, n uint64) error { return l.wait(ctx, n, &l.visible) }

// WaitApplied returns when an entry numbered n or above is applied, or ctx ends.
func (l *Log) WaitApplied(ctx context.Context, n uint64) error { return l.wait(ctx, n, &l.applied) }

func (l *Log) wait(ctx context.Context, n uint64, reached *uint64) error {
	for {
		l.mu.Lock()
		if *reached > n {
			l.mu.Unlock()
			return nil
		}
		if l.grown == nil {
			l.grown = make(chan struct{})
		}
		grown := l.grown
		l.mu.Unlock()
		select {
		case <-grown:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Seek gives the number of the first entry at or after a time. lost tells that
// entries at or after that time may have been given up.
func (l *Log) Seek(t Timestamp) (n uint64, lost bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	low, high := l.first, l.next
	for low < high {
		middle := low + (high-low)/2
		if l.at(middle).Time < t {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, t <= l.cut
}

// End gives the number after the last visible entry, and its time.
func (l *Log) End() (uint64, Timestamp) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.visible, l.visibleTime
}

// Applied gives the number after the last entry that is durable, and its time.
func (l *Log) Applied() (uint64, Timestamp) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.applied, l.appliedTime
}

// Passed counts the visible entries from number n on, up to the one with which enough are covered.
func (l *Log) Passed(n uint64, enough int, covers func(*Entry) bool) (count int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for n = max(n, l.first); n < l.visible && enough > 0; n++ {
		count++
		if covers(l.at(n)) {
			enough--
		}
	}
	return count
}

// Forgot tells that entries up to a time are gone, and gives up what is left of
// them.
func (l *Log) Forgot(cut Timestamp) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.first < l.next && l.at(l.first).Time <= cut {
		l.giveUp(l.at(l.first))
	}
	l.cut = max(l.cut, cut)
}

// Stats describes the history that is kept.
type Stats struct {
	Entries     int
	Bytes       int
	MaxEntries  int
	MaxBytes    int
	First, Last Timestamp
	// Cut is the time of the last entry that has been given up, 0 for none.
	Cut Timestamp
}

// Stats describes what is kept now.
func (l *Log) Stats() Stats {
	l.mu.RLock()
	defer l.mu.RUnlock()
	s := Stats{
		Entries: int(l.next - l.first), Bytes: l.bytes, MaxEntries: l.maxEntries, MaxBytes: l.maxBytes,
		Last: l.appliedTime, Cut: l.cut,
	}
	if l.next > l.first {
		s.First = l.at(l.first).Time
	}
	return s
}

// ErrHistoryLost is the error of a reader that wants what was given up.
func ErrHistoryLost() error {
	return mongoerr.New(mongoerr.ChangeStreamHistoryLost,
		"Resume of change stream was not possible, as the resume point may no longer be in the oplog.").
		WithLabels("NonResumableChangeStreamError")
}
