package sessionlink

import (
	"errors"

	"changerelay/services/projector/internal/namespace"
)

// codes are those of answers that have no condition, as HTTP has them.
var codes = map[int]namespace.Class{
	401: namespace.Refused, 403: namespace.Refused, 404: namespace.Refused, 410: namespace.Lost,
	408: namespace.Busy, 429: namespace.Busy, 500: namespace.Busy, 503: namespace.Busy,
}

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
	if c, known := codes[e.code]; known {
		return c
	}
	return namespace.Broken
}
