package sessionlink

import (
	"errors"

	"changerelay/services/projector/internal/namespace"
)

// classify says what an error means, one of an answer to a request included.
func classify(err error) namespace.Class {
	common := namespace.Classify(err)
	e, ok := errors.AsType[*answerError](err)
	if !ok || common == namespace.Cancelled {
		return common
	}
	if c, known := namespace.OfCondition(e.condition); known {
		return c
	}
	return namespace.OfCode(e.code)
}
