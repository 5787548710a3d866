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
	// That there is no session only an accept is told, and not by an answer.
	if c, known := namespace.OfCondition(e.condition); known && c != namespace.NoSession {
		return c
	}
	return namespace.OfCode(e.code)
}
