package broker

// heap is a binary min-heap whose items know their index, so that any of them
// can be removed or moved in O(log n). The zero index function is not usable:
// make one with newHeap.
type heap[T any] struct {
	items  []T
	before func(a, b T) bool
	placed func(item T, index int) // told every new index; -1 when the item leaves
}

func newHeap[T any](before func(a, b T) bool, placed func(T, int)) heap[T] {
	return heap[T]{before: before, placed: placed}
}

func (h *heap[T]) len() int { return len(h.items) }

func (h *heap[T]) first() T { return h.items[0] }

func (h *heap[T]) push(item T) {
	h.items = append(h.items, item)
	h.up(len(h.items) - 1)
}

func (h *heap[T]) pop() T {
	item := h.items[0]
	h.remove(0)
	return item
}

func (h *heap[T]) remove(i int) {
	last := len(h.items) - 1
	item := h.items[i]
	h.items[i] = h.items[last]
	var zero T
	h.items[last] = zero
	h.items = h.items[:last]
	h.placed(item, -1)
	if i < last {
		h.fix(i)
	}
}

// fix restores the order after the item at i has changed.
func (h *heap[T]) fix(i int) {
	if !h.down(i) {
		h.up(i)
	}
}

func (h *heap[T]) up(i int) {
	item := h.items[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(item, h.items[parent]) {
			break
		}
		h.items[i] = h.items[parent]
		h.placed(h.items[i], i)
		i = parent
	}
	h.items[i] = item
	h.placed(item, i)
}

func (h *heap[T]) down(i int) (moved bool) {
	item := h.items[i]
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			break
		}
		if child+1 < len(h.items) && h.before(h.items[child+1], h.items[child]) {
			child++
		}
		if !h.before(h.items[child], item) {
			break
		}
		h.items[i] = h.items[child]
		h.placed(h.items[i], i)
		i = child
		moved = true
	}
	h.items[i] = item
	h.placed(item, i)
	return moved
}
