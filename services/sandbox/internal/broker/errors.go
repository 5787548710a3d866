package broker

import (
	"fmt"
	"strconv"
	"time"
)

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

func errNotFound(namespace, path string) *Error {
	return &Error{ConditionNotFound, fmt.Sprintf("The messaging entity 'sb://%s/%s' could not be found. To know more visit https://aka.ms/sbResourceMgrExceptions.", namespace, path)}
}

func errNotAllowed(description string) *Error {
	return &Error{ConditionNotAllowed, description}
}

func errArgument(format string, args ...any) *Error {
	return &Error{ConditionArgument, fmt.Sprintf(format, args...)}
}

func errEntityExists(path string) *Error {
	return &Error{ConditionEntityExists, fmt.Sprintf("The messaging entity '%s' already exists.", path)}
}

func errDisabled(namespace, path string) *Error {
	return &Error{ConditionEntityDisabled, fmt.Sprintf("Messaging entity 'sb://%s/%s' is currently disabled.", namespace, path)}
}

func errSessionRequired() *Error {
	return errNotAllowed("It is not possible for an entity that requires sessions to create a non-sessionful message receiver.")
}

func errSessionNotSupported() *Error {
	return errNotAllowed("A sessionful message receiver cannot be created on an entity that does not require sessions. Ensure RequiresSession is set to true when creating a Queue or Subscription to enable sessionful behavior.")
}

func errSessionIDMissing() *Error {
	return errNotAllowed("The SessionId was not set on a message, and it cannot be sent to the entity. Entities that have session support enabled can only receive messages that have the SessionId set to a valid value.")
}

func errSessionCannotBeLocked(sessionID string) *Error {
	return &Error{ConditionSessionCannotBeLocked, fmt.Sprintf("The requested session '%s' cannot be accepted. It may be locked by another receiver.", sessionID)}
}

func errSessionLockLost() *Error {
	return &Error{ConditionSessionLockLost, "The session lock has expired on the MessageSession. Accept a new MessageSession."}
}

func errMessageLockLost() *Error {
	return &Error{ConditionMessageLockLost, "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue, or was received by a different receiver instance."}
}

func errMessageNotFound(seq int64) *Error {
	return &Error{ConditionMessageNotFound, fmt.Sprintf("Failed to lock one or more specified messages. The message with sequence number %d does not exist.", seq)}
}

// busyMost is the longest wait that a throttled client is told.
const busyMost = 10 * time.Second

func errServerBusy(wait time.Duration) *Error {
	seconds := max(1, int((min(wait, busyMost)+time.Second-1)/time.Second))
	return &Error{ConditionServerBusy, "The request was terminated because the entity is being throttled. Error code : 50009. Please wait " + strconv.Itoa(seconds) + " seconds and try again."}
}

func errTimeout() *Error {
	return &Error{ConditionTimeout, "The operation did not complete within the allotted timeout. The time allotted to this operation may have been a portion of a longer timeout."}
}

func errMessageSize(size, limit int64) *Error {
	return &Error{ConditionMessageSizeExceeded, fmt.Sprintf("The received message (delivery-id:0, size:%d bytes) exceeds the limit (%d bytes) currently allowed on the link.", size, limit)}
}

func errQuota(kind, path string, size, limit int64) *Error {
	return &Error{ConditionResourceLimitExceeded, fmt.Sprintf("The maximum entity size has been reached or exceeded for %s: '%s'. Size of entity in bytes:%d, Max entity size in bytes:%d.", kind, path, size, limit)}
}

func errMixedBatch(dedup bool) *Error {
	if dedup {
		return errNotAllowed("Batching brokered messages with distinct SessionId, PartitionKey, or MessageId is not supported for an entity with partitioning and duplicate detection enabled.")
	}
	return errNotAllowed("Batching brokered messages with distinct SessionId or PartitionKey is not supported for an entity with partitioning enabled.")
}

func errKeysDiffer(partitionKey, sessionID string) *Error {
	return errNotAllowed(fmt.Sprintf("PartitionKey '%s' and SessionId '%s' must be equal when both are set on a message.", partitionKey, sessionID))
}

func errDetached() *Error {
	return &Error{ConditionDetachForced, "The link was force detached by the broker because of an entity update or an administrative action. Please recreate the link."}
}
