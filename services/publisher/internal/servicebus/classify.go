package servicebus

import (
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"changerelay/services/publisher/internal/relay"
)

// conditions are the AMQP error conditions with which the service answers a
// send, a link or a claim.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-troubleshoot
var conditions = map[amqp.ErrCond]relay.Class{
	"com.microsoft:server-busy":         relay.Throttled,
	"com.microsoft:timeout":             relay.Transient,
	"com.microsoft:operation-cancelled": relay.Transient,
	amqp.ErrCondMessageSizeExceeded:     relay.TooLarge,

	amqp.ErrCondNotFound:              relay.Blocked,
	amqp.ErrCondResourceDeleted:       relay.Blocked,
	"com.microsoft:entity-disabled":   relay.Blocked,
	amqp.ErrCondResourceLimitExceeded: relay.Blocked, // the topic is full
	amqp.ErrCondUnauthorizedAccess:    relay.Blocked,
	"com.microsoft:auth-failed":       relay.Blocked,

	// The service refuses the message as such. Which of our settings it does not
	// like is for an operator to see; dropping the message is not an answer.
	amqp.ErrCondNotAllowed:         relay.Blocked,
	amqp.ErrCondNotImplemented:     relay.Blocked,
	amqp.ErrCondInvalidField:       relay.Blocked,
	amqp.ErrCondPreconditionFailed: relay.Blocked,
	"com.microsoft:argument-error": relay.Blocked,
}

// classify says what a failed send calls for. What it does not know is
// Transient: sending the same messages again is always safe.
func classify(err error) relay.Class {
	if errors.Is(err, azservicebus.ErrMessageTooLarge) {
		return relay.TooLarge
	}
	if answer, ok := errors.AsType[*amqp.Error](err); ok {
		if class, known := conditions[answer.Condition]; known {
			return class
		}
	}
	if failure, ok := errors.AsType[*azservicebus.Error](err); ok {
		switch failure.Code {
		case azservicebus.CodeUnauthorizedAccess, azservicebus.CodeNotFound:
			return relay.Blocked
		}
	}
	// azidentity marks credentials that will not get better by trying again.
	var credential interface{ NonRetriable() }
	if errors.As(err, &credential) {
		return relay.Blocked
	}
	return relay.Transient
}

// doubtful reports whether the connection may be at fault, so that the next
// send had better have a new one.
func doubtful(class relay.Class) bool { return class == relay.Transient || class == relay.Blocked }
