package entity

import "fmt"

// Conditions of Error: the ones the service puts into AMQP errors. Clients
// branch on them, so they are part of the protocol.
const (
	ConditionNotFound              = "amqp:not-found"
	ConditionNotAllowed            = "amqp:not-allowed"
	ConditionInvalidField          = "amqp:invalid-field"
	ConditionNotImplemented        = "amqp:not-implemented"
	ConditionResourceLimitExceeded = "amqp:resource-limit-exceeded"
	ConditionMessageSizeExceeded   = "amqp:link:message-size-exceeded"
	ConditionDetachForced          = "amqp:link:detach-forced"
	ConditionEntityDisabled        = "com.microsoft:entity-disabled"
	ConditionEntityExists          = "com.microsoft:entity-already-exists"
	ConditionArgument              = "com.microsoft:argument-error"
	ConditionMessageLockLost       = "com.microsoft:message-lock-lost"
	ConditionMessageNotFound       = "com.microsoft:message-not-found"
	ConditionSessionLockLost       = "com.microsoft:session-lock-lost"
	ConditionSessionCannotBeLocked = "com.microsoft:session-cannot-be-locked"
	ConditionServerBusy            = "com.microsoft:server-busy"
	ConditionTimeout               = "com.microsoft:timeout"
	ConditionOperationCancelled    = "com.microsoft:operation-cancelled"
)

// Error is a refusal or a loss in the service's own terms. Every error that
// the broker reports about a request is one; everything else is a context's
// error or a journal's.
type Error struct {
	Condition   string // symbolic, such as amqp:not-found
	Description string // for people
}

func (e *Error) Error() string { return e.Condition + ": " + e.Description }

// ErrArgument refuses an argument.
func ErrArgument(format string, args ...any) *Error {
	return &Error{Condition: ConditionArgument, Description: fmt.Sprintf(format, args...)}
}
