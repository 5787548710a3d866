package session

import (
	"container/list"
	"context"
	"sync"
)

// sideBySide is how many holds the budget is for at least: none takes more than
// its part, unless one message is more.
const sideBySide = 8

// budget bounds the bytes of messages that a process has asked for and not yet
// settled, by a total less what is set aside. A hold takes its share before it asks,
// for what it takes its messages to weigh, and corrects it when it knows.
//
// One message always gets through, however large: who has nothing is next when
// the others have let go of theirs, in order. Who has a share already is not made
// to wait for more of it, so that no two wait for each other.
type budget struct {
	total int64

	mu      sync.Mutex
	aside   int64      // guarded by mu: of total, and no share
	used    int64      // guarded by mu; may be above total by what was weighed too light
	waiting *list.List // guarded by mu: of *claim, the longest waiting first
}

// claim is a share that is waited for.
type claim struct {
	share       *share
	want, least int64
	granted     chan struct{}
}

func newBudget(total int64) *budget { return &budget{total: total, waiting: list.New()} }

// each is what one hold may have.
func (b *budget) each() int64 { return b.total / sideBySide }

// share is what one hold has of the budget. It belongs to the hold's goroutine
// but for a claim that waits.
type share struct {
	budget *budget
	has    int64 // guarded by budget.mu
}

// ask enlarges the share to want bytes as far as there are any, and returns what
// it is. One that is empty becomes least at least, however long that takes.
func (s *share) ask(ctx context.Context, want, least int64) (int64, error) {
	b := s.budget
	want = max(min(want, b.each()), least)
	b.mu.Lock()
	if s.has > 0 {
		defer b.mu.Unlock()
		if b.waiting.Len() == 0 {
			b.add(s, max(min(want-s.has, b.free()), 0))
		}
		return s.has, nil
	}
	c := &claim{s, want, least, make(chan struct{})}
	place := b.waiting.PushBack(c)
	b.grant()
	b.mu.Unlock()
	select {
	case <-c.granted:
	case <-ctx.Done():
		b.mu.Lock()
		defer b.mu.Unlock()
		b.waiting.Remove(place)
		b.grant()
		return s.has, context.Cause(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return s.has, nil
}

// set makes the share what it has turned out to be, or has become.
func (s *share) set(bytes int64) {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(s, bytes-s.has)
	b.grant()
}

// room waits until there is some, so that no session is held that could not be
// worked on while others might take it; false when ctx ended first.
func (b *budget) room(ctx context.Context) bool {
	s := share{budget: b}
	_, err := s.ask(ctx, 1, 1)
	s.set(0)
	return err == nil
}

// add changes a share. Called with mu held.
func (b *budget) add(s *share, bytes int64) {
	s.has += bytes
	b.used += bytes
}

// setAside has shares have so many bytes less, or more where that is below 0. Nobody who
// is next waits for it to end.
func (b *budget) setAside(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.aside += bytes
	b.grant()
}

// free is how many bytes are neither used nor set aside; it may be below 0. Called with
// mu held.
func (b *budget) free() int64 { return b.total - b.aside - b.used }

// grant gives those who wait what there is, in order. Called with mu held.
func (b *budget) grant() {
	for e := b.waiting.Front(); e != nil; e = b.waiting.Front() {
		c := e.Value.(*claim)
		if b.used > 0 && c.least > b.free() {
			return
		}
		b.waiting.Remove(e)
		b.add(c.share, max(min(c.want, b.free()), c.least))
		close(c.granted)
	}
}

// inUse is how many bytes are in use.
func (b *budget) inUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}
