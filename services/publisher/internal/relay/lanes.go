package relay

import (
	"sync"
	"time"

	"changerelay/pkg/contract"
)

// item is one change on its way to the topic.
type item struct {
	number  uint64 // in the watermark
	change  Change
	message contract.Message
	span    Span  // nil where nobody traces
	next    *item // the next one of the lane
}

// lane holds the unsent changes of one aggregate, oldest first.
type lane struct {
	aggregateID string
	head, tail  *item

	// Owned by the holder:

	// alone is how many of the first items have to be sent one at a time, so that
	// one which cannot be sent is told from the others.
	alone int
	// trouble is that of the first items; nil while they have none.
	trouble *trouble
}

// unmixable reports whether the lane has to be sent without others: among lanes
// that have not failed it would make every send with it look like the topic's trouble.
func (l *lane) unmixable() bool { return l.alone > 0 || l.trouble != nil }

// lanes spreads changes over one lane per aggregate and hands each lane to one
// sender at a time.
//
// Invariant: a lane with items is either in ready or single, once, or rests, or
// is held by the one sender that received it from there; a lane without items is
// not in the map, unless it is borrowed.
type lanes struct {
	// ready gives lanes to send from. A receiver holds the lane until it calls
	// settle or rest. It is closed when the lanes are closed and all items settled.
	ready chan *lane
	// single gives lanes that have to be sent apart from others.
	single chan *lane

	mu     sync.Mutex
	byID   map[string]*lane
	items  int
	closed bool
}

// newLanes returns lanes for at most capacity items at a time.
func newLanes(capacity int) *lanes {
	return &lanes{ready: make(chan *lane, capacity), single: make(chan *lane, capacity), byID: map[string]*lane{}}
}

// add puts an item at the end of its aggregate's lane. It never blocks.
func (l *lanes) add(aggregateID string, it *item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items++
	if held := l.byID[aggregateID]; held != nil && held.head != nil {
		held.tail.next = it
		held.tail = it
		return
	} else if held != nil { // borrowed
		held.head, held.tail = it, it
		return
	}
	fresh := &lane{aggregateID: aggregateID, head: it, tail: it}
	l.byID[aggregateID] = fresh
	l.ready <- fresh // there are never more lanes with items than items
}

// borrow returns a lane without items, held by the caller until settle, so that
// nobody else sends of its aggregate meanwhile. It returns nil where the
// aggregate has items. There must be items of others until it is given back.
func (l *lanes) borrow(aggregateID string) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID[aggregateID] != nil {
		return nil
	}
	fresh := &lane{aggregateID: aggregateID}
	l.byID[aggregateID] = fresh
	return fresh
}

// only reports whether all items are of one lane.
func (l *lanes) only() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byID) == 1
}

// front returns the lane's first items: at most limit, and together at most
// maxBytes of body unless the first alone is larger. They stay in the lane.
func (l *lanes) front(held *lane, limit, maxBytes int, into []*item) []*item {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held.alone > 0 {
		return append(into, held.head)
	}
	size := 0
	for it := held.head; it != nil && len(into) < limit; it = it.next {
		size += len(it.message.Body)
		if len(into) > 0 && size > maxBytes {
			break
		}
		into = append(into, it)
	}
	return into
}

// settle removes the lane's first n items and gives the lane back.
func (l *lanes) settle(held *lane, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range n {
		held.head = held.head.next
	}
	l.items -= n
	held.alone = max(held.alone-n, 0)
	if n > 0 {
		held.trouble = nil
	}
	switch {
	case held.head == nil:
		delete(l.byID, held.aggregateID)
	case held.alone > 0:
		l.single <- held
	default:
		l.ready <- held // to the end: lanes take turns
	}
	l.closeIfDone()
}

// rest gives the lane back after a pause, with all its items. The sender is free
// for other lanes meanwhile.
func (l *lanes) rest(held *lane, pause time.Duration) {
	time.AfterFunc(pause, func() { l.settle(held, 0) })
}

// close says that no item will be added.
func (l *lanes) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.closeIfDone()
}

func (l *lanes) closeIfDone() {
	if l.closed && l.items == 0 {
		close(l.ready)
	}
}
