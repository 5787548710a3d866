package servicebus

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

// class is what an error of the client means for whoever holds or wants a session.
type class string

const (
	// noSession: nothing to do, and no error.
	noSession class = "no session"
	// lost: the lock or the link of the session is gone.
	lost class = "lock lost"
	// refused: the entity or the rights are not what they should be. Waiting
	// does not mend it, an operator does.
	refused class = "refused"
	// busy: the service is throttling, or could not do it this time.
	busy class = "busy"
	// cancelled: our own deadline or cancellation.
	cancelled class = "cancelled"
	// broken: the connection, or something nobody has seen yet.
	broken class = "broken"
)

var conditions = map[amqp.ErrCond]class{
	"com.microsoft:timeout":                  noSession,
	"com.microsoft:session-lock-lost":        lost,
	"com.microsoft:message-lock-lost":        lost,
	"com.microsoft:session-cannot-be-locked": lost,
	amqp.ErrCondDetachForced:                 lost,
	amqp.ErrCondStolen:                       lost,
	"com.microsoft:server-busy":              busy,
	"com.microsoft:operation-cancelled":      busy,
	amqp.ErrCondResourceLimitExceeded:        busy,
	amqp.ErrCondUnauthorizedAccess:           refused,
	amqp.ErrCondNotFound:                     refused,
	amqp.ErrCondNotAllowed:                   refused,
	amqp.ErrCondNotImplemented:               refused,
	"com.microsoft:entity-disabled":          refused,
}

// classify says what an error of the client means. What it does not know counts
// as broken, which leads to a new connection and never to a lost message.
func classify(err error) class {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return cancelled
	}
	if errors.Is(err, errUsedUp{}) {
		return broken
	}
	if e, ok := errors.AsType[*azservicebus.Error](err); ok {
		switch e.Code {
		case azservicebus.CodeTimeout:
			return noSession
		case azservicebus.CodeLockLost, azservicebus.CodeClosed:
			return lost
		case azservicebus.CodeUnauthorizedAccess, azservicebus.CodeNotFound:
			return refused
		}
	}
	// The condition of a connection's end is not about the entity.
	if _, ok := errors.AsType[*amqp.ConnError](err); ok {
		return broken
	}
	if e, ok := errors.AsType[*amqp.Error](err); ok {
		if c, known := conditions[e.Condition]; known {
			return c
		}
	}
	if _, ok := errors.AsType[interface {
		error
		NonRetriable()
	}](err); ok {
		return refused
	}
	return broken
}
