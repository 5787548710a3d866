package amqpserver

import (
	"context"
	"errors"
	"net/http"

	"changerelay/services/sandbox/internal/servicebus/amqp"
	"changerelay/services/sandbox/internal/servicebus/entity"
)

// conditionDeadLetter marks the rejection of a message as a wish to dead-letter it.
const conditionDeadLetter = "com.microsoft:dead-letter"

// asError is the one place where errors become AMQP errors.
func asError(err error) *amqp.Error {
	if refused, ok := errors.AsType[*entity.Error](err); ok {
		return &amqp.Error{Condition: refused.Condition, Description: refused.Description}
	}
	if wire, ok := errors.AsType[*amqp.Error](err); ok {
		return wire
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &amqp.Error{Condition: entity.ConditionOperationCancelled, Description: "The operation was cancelled."}
	}
	return &amqp.Error{Condition: amqp.ConditionInternalError, Description: err.Error()}
}

func isCondition(err error, condition string) bool {
	var refused *entity.Error
	return errors.As(err, &refused) && refused.Condition == condition
}

// statusOf is the status code of a refused request (AMQP Management, section 3.2, which takes HTTP's).
func statusOf(condition string) int32 {
	switch condition {
	case entity.ConditionMessageLockLost, entity.ConditionSessionLockLost, entity.ConditionSessionCannotBeLocked:
		return http.StatusGone
	case entity.ConditionNotFound, entity.ConditionMessageNotFound:
		return http.StatusNotFound
	case amqp.ConditionUnauthorized:
		return http.StatusUnauthorized
	case entity.ConditionTimeout:
		return http.StatusRequestTimeout
	case entity.ConditionServerBusy, entity.ConditionOperationCancelled:
		return http.StatusServiceUnavailable
	case entity.ConditionArgument, entity.ConditionInvalidField, amqp.ConditionDecodeError:
		return http.StatusBadRequest
	case entity.ConditionNotAllowed, entity.ConditionEntityDisabled, entity.ConditionResourceLimitExceeded,
		entity.ConditionMessageSizeExceeded:
		return http.StatusForbidden
	case entity.ConditionEntityExists:
		return http.StatusConflict
	case entity.ConditionNotImplemented:
		return http.StatusNotImplemented
	}
	return http.StatusInternalServerError
}
