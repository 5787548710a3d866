package backfill

import "slices"

// Open is how many of the last chunk's last documents share the first field of the
// order with what the next chunk may begin with.
func (s *Source) Open() int { return s.open }

// openIn is Open of a chunk.
func (s *Source) openIn(found chunk) int {
	if found.short || s.rest.begun || len(s.plan.Order) == 1 {
		return 0
	}
	field, n := s.plan.Order[0], 0
	last, err := valueAt(found.documents[len(found.documents)-1], field)
	for _, document := range slices.Backward(found.documents) {
		value, otherErr := valueAt(document, field)
		if err != nil || otherErr != nil || !value.Equal(last) {
			break
		}
		n++
	}
	return n
}
