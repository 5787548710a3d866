package amqpserver

import (
	"context"
	"errors"
	"net/http"

	"changerelay/services/sandbox/internal/amqp"
	"changerelay/services/sandbox/internal/broker"
)

// conditionDeadLetter marks the rejection of a message as a wish to dead-letter it.
const conditionDeadLetter = "com.microsoft:dead-letter"

// asError is the one place where errors become AMQP errors.
func asError(err error) *amqp.Error {
	if refused, ok := errors.AsType[*broker.Error](err); ok {
		return &amqp.Error{Condition: refused.Condition, Description: refused.Description}
	}
	if wire, ok := errors.AsType[*amqp.Error](err); ok {
		return wire
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &amqp.Error{Condition: broker.ConditionOperationCancelled, Description: "The operation was cancelled."}
	}
	return &amqp.Error{Condition: amqp.ConditionInternalError, Description: err.Error()}
}

func isCondition(err error, condition string) bool {
	var refused *broker.Error
	return errors.As(err, &refused) && refused.Condition == condition
}

// statusOf is the status code of a refused request (AMQP Management, section 3.2, which takes HTTP's).
func statusOf(condition string) int32 {
	switch condition {
	case broker.ConditionMessageLockLost, broker.ConditionSessionLockLost, broker.ConditionSessionCannotBeLocked:
		return http.StatusGone
	case broker.ConditionNotFound, broker.ConditionMessageNotFound:
		return http.StatusNotFound
	case amqp.ConditionUnauthorized:
		return http.StatusUnauthorized
	case broker.ConditionTimeout:
		return http.StatusRequestTimeout
	case broker.ConditionServerBusy, broker.ConditionOperationCancelled:
		return http.StatusServiceUnavailable
	case broker.ConditionArgument, broker.ConditionInvalidField, amqp.ConditionDecodeError:
		return http.StatusBadRequest
	case broker.ConditionNotAllowed, broker.ConditionEntityDisabled, broker.ConditionResourceLimitExceeded,
		broker.ConditionMessageSizeExceeded:
		return http.StatusForbidden
	case broker.ConditionEntityExists:
		return http.StatusConflict
	case broker.ConditionNotImplemented:
		return http.StatusNotImplemented
	}
	return http.StatusInternalServerError
}
