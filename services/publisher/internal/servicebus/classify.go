package servicebus

import (
	"errors"
	"regexp"
	"strconv"
	"time"

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

	amqp.ErrCondNotFound:              relay.Blocked,
	amqp.ErrCondResourceDeleted:       relay.Blocked,
	"com.microsoft:entity-disabled":   relay.Blocked,
	amqp.ErrCondResourceLimitExceeded: relay.Blocked, // the topic is full
	amqp.ErrCondUnauthorizedAccess:    relay.Blocked,
	"com.microsoft:auth-failed":       relay.Blocked,

	// What the service does not like is in the message, or in how the topic is set
	// up: it does not say which.
	amqp.ErrCondNotAllowed:         relay.Refused,
	amqp.ErrCondNotImplemented:     relay.Refused,
	amqp.ErrCondInvalidField:       relay.Refused,
	amqp.ErrCondDecodeError:        relay.Refused,
	amqp.ErrCondPreconditionFailed: relay.Refused,
	"com.microsoft:argument-error": relay.Refused,
}

// longestWait bounds what the service may ask for.
const longestWait = time.Minute

// advice is how the service says how long to wait:
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-throttling
var advice = regexp.MustCompile(`(?i)wait (\d{1,4}) seconds?`)

// advised returns how long a service that is busy asks to wait, 0 where it does not say.
func advised(class relay.Class, err error) time.Duration {
	found := advice.FindStringSubmatch(err.Error())
	if class != relay.Throttled || found == nil {
		return 0
	}
	seconds, _ := strconv.Atoi(found[1]) // at most four digits
	return min(time.Duration(seconds)*time.Second, longestWait)
}

// aboutSize reports whether an error names a message's size. Whose message that
// was, and when, it does not say.
func aboutSize(err error) bool {
	answer, ok := errors.AsType[*amqp.Error](err)
	return ok && answer.Condition == amqp.ErrCondMessageSizeExceeded || errors.Is(err, azservicebus.ErrMessageTooLarge)
}

// classify says what a failed send calls for. What it does not know is
// Transient: sending the same messages again is always safe.
func classify(err error) relay.Class {
	if _, ok := errors.AsType[tooLargeError](err); ok {
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
// send had better have a new one. A link that has ended is, whatever it ended for.
func doubtful(class relay.Class, err error) bool {
	return class == relay.Transient || class == relay.Blocked || ended(err)
}

// ended reports whether an error is that of a link, session or connection that
// the service has ended, rather than its answer to a message.
func ended(err error) bool {
	link, session, connection := new(*amqp.LinkError), new(*amqp.SessionError), new(*amqp.ConnError)
	return errors.As(err, link) || errors.As(err, session) || errors.As(err, connection)
}
