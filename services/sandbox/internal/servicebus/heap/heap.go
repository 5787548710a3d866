// Package heap is a priority queue from which any item can be taken.
package heap

// Heap is a binary min-heap whose items know their index, so that any of them
// can be removed or moved in O(log n). The zero index function is not usable:
// make one with New.
type Heap[T any] struct {
	Items  []T
	before func(a, b T) bool
	placed func(item T, index int) // told every new index; -1 when the item leaves
}

// New makes an empty heap.
func New[T any](before func(a, b T) bool, placed func(T, int)) Heap[T] {
	return Heap[T]{before: before, placed: placed}
}

// Len is the number of items.
func (h *Heap[T]) Len() int { return len(h.Items) }

// First is the least item. There must be one.
func (h *Heap[T]) First() T { return h.Items[0] }

// Push adds an item.
func (h *Heap[T]) Push(item T) {
	h.Items = append(h.Items, item)
	h.up(len(h.Items) - 1)
}

// Pop takes the least item away. There must be one.
func (h *Heap[T]) Pop() T {
	item := h.Items[0]
	h.Remove(0)
	return item
}

// Remove takes the item at an index away.
func (h *Heap[T]) Remove(i int) {
	last := len(h.Items) - 1
	item := h.Items[i]
	h.Items[i] = h.Items[last]
	var zero T
	h.Items[last] = zero
	h.Items = h.Items[:last]
	h.placed(item, -1)
	if i < last {
		h.Fix(i)
	}
}

// Fix restores the order after the item at i has changed.
func (h *Heap[T]) Fix(i int) {
	if !h.down(i) {
		h.up(i)
	}
}

func (h *Heap[T]) up(i int) {
	item := h.Items[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(item, h.Items[parent]) {
			break
		}
		h.Items[i] = h.Items[parent]
		h.placed(h.Items[i], i)
		i = parent
	}
	h.Items[i] = item
	h.placed(item, i)
}

func (h *Heap[T]) down(i int) (moved bool) {
	item := h.Items[i]
	for {
		child := 2*i + 1
		if child >= len(h.Items) {
			break
		}
		if child+1 < len(h.Items) && h.before(h.Items[child+1], h.Items[child]) {
			child++
		}
		if !h.before(h.Items[child], item) {
			break
		}
		h.Items[i] = h.Items[child]
		h.placed(h.Items[i], i)
		i = child
		moved = true
	}
	h.Items[i] = item
	h.placed(item, i)
	return moved
}
