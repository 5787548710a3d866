package broker

import (
	"fmt"
	"strconv"
	"time"

	"changerelay/services/sandbox/internal/servicebus/entity"
)

func errNotFound(namespace, path string) *entity.Error {
	return &entity.Error{Condition: entity.ConditionNotFound, Description: fmt.Sprintf("The messaging entity 'sb://%s/%s' could not be found. To know more visit https://aka.ms/sbResourceMgrExceptions.", namespace, path)}
}

func errNotAllowed(description string) *entity.Error {
	return &entity.Error{Condition: entity.ConditionNotAllowed, Description: description}
}

func errEntityExists(path string) *entity.Error {
	return &entity.Error{Condition: entity.ConditionEntityExists, Description: fmt.Sprintf("The messaging entity '%s' already exists.", path)}
}

func errDisabled(namespace, path string) *entity.Error {
	return &entity.Error{Condition: entity.ConditionEntityDisabled, Description: fmt.Sprintf("Messaging entity 'sb://%s/%s' is currently disabled.", namespace, path)}
}

func errSessionRequired() *entity.Error {
	return errNotAllowed("It is not possible for an entity that requires sessions to create a non-sessionful message receiver.")
}

func errSessionNotSupported() *entity.Error {
	return errNotAllowed("A sessionful message receiver cannot be created on an entity that does not require sessions. Ensure RequiresSession is set to true when creating a Queue or Subscription to enable sessionful behavior.")
}

func errSessionIDMissing() *entity.Error {
	return errNotAllowed("The SessionId was not set on a message, and it cannot be sent to the entity. Entities that have session support enabled can only receive messages that have the SessionId set to a valid value.")
}

func errSessionCannotBeLocked(sessionID string) *entity.Error {
	return &entity.Error{Condition: entity.ConditionSessionCannotBeLocked, Description: fmt.Sprintf("The requested session '%s' cannot be accepted. It may be locked by another receiver.", sessionID)}
}

func errSessionLockLost() *entity.Error {
	return &entity.Error{Condition: entity.ConditionSessionLockLost, Description: "The session lock has expired on the MessageSession. Accept a new MessageSession."}
}

func errMessageLockLost() *entity.Error {
	return &entity.Error{Condition: entity.ConditionMessageLockLost, Description: "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue, or was received by a different receiver instance."}
}

func errMessageNotFound(seq int64) *entity.Error {
	return &entity.Error{Condition: entity.ConditionMessageNotFound, Description: fmt.Sprintf("Failed to lock one or more specified messages. The message with sequence number %d does not exist.", seq)}
}

// busyMost is the longest wait that a throttled client is told.
const busyMost = 10 * time.Second

func errServerBusy(wait time.Duration) *entity.Error {
	return &entity.Error{Condition: entity.ConditionServerBusy, Description: "The request was terminated because the entity is being throttled. Error code : 50009. Please wait " + seconds(wait) + " seconds and try again."}
}

// seconds is a wait as clients are told it.
func seconds(wait time.Duration) string {
	return strconv.Itoa(max(1, int((min(wait, busyMost)+time.Second-1)/time.Second)))
}

// errNamespaceBusy and errEntityBusy are the service's two ways to say that there is too much to do.
func errNamespaceBusy(namespace string, wait time.Duration) *entity.Error {
	return &entity.Error{Condition: entity.ConditionServerBusy, Description: "The request was terminated because the namespace " + namespace + " is being throttled. Error code : 50009. Please wait " + seconds(wait) + " seconds and try again."}
}

func errEntityBusy(path string, wait time.Duration) *entity.Error {
	return &entity.Error{Condition: entity.ConditionServerBusy, Description: "The request was terminated because the entity is being throttled. Error code : 50002. Sub error : 102. Please wait " + seconds(wait) + " seconds and try again. Entity: " + path + "."}
}

func errTooMany(what string, most int64) *entity.Error {
	return &entity.Error{Condition: entity.ConditionResourceLimitExceeded, Description: fmt.Sprintf("The maximum number of %s, %d, has been reached.", what, most)}
}

func errTimeout() *entity.Error {
	return &entity.Error{Condition: entity.ConditionTimeout, Description: "The operation did not complete within the allotted timeout. The time allotted to this operation may have been a portion of a longer timeout."}
}

func errMessageSize(size, limit int64) *entity.Error {
	return &entity.Error{Condition: entity.ConditionMessageSizeExceeded, Description: fmt.Sprintf("The received message (delivery-id:0, size:%d bytes) exceeds the limit (%d bytes) currently allowed on the link.", size, limit)}
}

func errAnswerSize(size, limit int64) *entity.Error {
	return &entity.Error{Condition: entity.ConditionMessageSizeExceeded, Description: fmt.Sprintf("The messages that are asked for take %d bytes together, more than the %d of one answer. Ask for fewer at a time.", size, limit)}
}

func errQuota(kind, path string, size, limit int64) *entity.Error {
	return &entity.Error{Condition: entity.ConditionResourceLimitExceeded, Description: fmt.Sprintf("The maximum entity size has been reached or exceeded for %s: '%s'. Size of entity in bytes:%d, Max entity size in bytes:%d.", kind, path, size, limit)}
}

func errMixedBatch(dedup bool) *entity.Error {
	if dedup {
		return errNotAllowed("Batching brokered messages with distinct SessionId, PartitionKey, or MessageId is not supported for an entity with partitioning and duplicate detection enabled.")
	}
	return errNotAllowed("Batching brokered messages with distinct SessionId or PartitionKey is not supported for an entity with partitioning enabled.")
}

func errKeysDiffer(partitionKey, sessionID string) *entity.Error {
	return errNotAllowed(fmt.Sprintf("PartitionKey '%s' and SessionId '%s' must be equal when both are set on a message.", partitionKey, sessionID))
}

func errDetached() *entity.Error {
	return &entity.Error{Condition: entity.ConditionDetachForced, Description: "The link was force detached by the broker because of an entity update or an administrative action. Please recreate the link."}
}
