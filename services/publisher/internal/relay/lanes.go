package relay

import (
	"sync"

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
}

// lanes spreads changes over one lane per aggregate and hands each lane to one
// sender at a time.
//
// Invariant: a lane with items is either in ready, once, or held by the one
// sender that received it from there; a lane without items is not in the map.
type lanes struct {
	// ready gives lanes to send from. A receiver holds the lane until it calls
	// settle. It is closed when the lanes are closed and all items settled.
	ready chan *lane

	mu     sync.Mutex
	byID   map[string]*lane
	items  int
	closed bool
}

// newLanes returns lanes for at most capacity items at a time.
func newLanes(capacity int) *lanes {
	return &lanes{ready: make(chan *lane, capacity), byID: map[string]*lane{}}
}

// add puts an item at the end of its aggregate's lane. It never blocks.
func (l *lanes) add(aggregateID string, it *item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items++
	if held := l.byID[aggregateID]; held != nil {
		held.tail.next = it
		held.tail = it
		return
	}
	fresh := &lane{aggregateID: aggregateID, head: it, tail: it}
	l.byID[aggregateID] = fresh
	l.ready <- fresh // there are never more lanes than items
}

// front returns the lane's first items: at most limit, and together at most
// maxBytes of body unless the first alone is larger. They stay in the lane.
func (l *lanes) front(held *lane, limit, maxBytes int, into []*item) []*item {
	l.mu.Lock()
	defer l.mu.Unlock()
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
	if held.head != nil {
		l.ready <- held // to the end: lanes take turns
	} else {
		delete(l.byID, held.aggregateID)
	}
	l.closeIfDone()
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
