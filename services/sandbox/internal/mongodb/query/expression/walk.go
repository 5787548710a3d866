package expression

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

const (
	// checkEvery is how many steps lie between two looks at whether to go on.
	checkEvery = 256
	// bytesOfStep is how much of a value counts as a step: operators go through
	// text by pieces of at least that size.
	bytesOfStep = 1 << 10
)

// goesOn counts steps, and tells at the end of some whether to take more. Every
// evaluation is one, and more when its value is large, so that no operator begins
// on a long argument after the time is up. What goes through many elements by
// itself counts each.
//
// Once it has said no it does so for good, and the operand that is evaluated
// fails with the cause: nothing that sees a walk end early needs to know why.
func (s *scope) goesOn(steps int) bool {
	if s.stopped != nil {
		return false
	}
	if s.steps += steps; s.steps >= checkEvery && s.interrupted != nil {
		s.steps = 0
		s.stopped = s.interrupted()
	}
	return s.stopped == nil
}

// walk iterates over an array or a document that may be long.
type walk struct {
	bsonkit.Iterator
	scope *scope
}

func (s *scope) walk(v bson.RawValue) walk { return walk{bsonkit.Iterate(v.Value), s} }

// Next moves to the next element, unless there is none or the evaluation is to
// end.
func (w *walk) Next() bool { return w.Iterator.Next() && w.scope.goesOn(1) }

// count is the number of elements of an array.
func (s *scope) count(array bson.RawValue) int {
	n := 0
	for it := s.walk(array); it.Next(); {
		n++
	}
	return n
}

// values lists the elements of an array. It counts them first: a list of millions
// that grows as it is filled costs several times as much.
func (s *scope) values(array bson.RawValue) []bson.RawValue {
	values := make([]bson.RawValue, 0, s.count(array))
	for it := s.walk(array); it.Next(); {
		values = append(values, it.Value())
	}
	return values
}
