package namespace

import (
	"context"
	"errors"
	"strings"

	"github.com/Azure/go-amqp"
)

// Class is what an error means for whoever holds or wants a session.
type Class string

const (
	// NoSession is nothing to do, and no error.
	NoSession Class = "no session"
	// Lost says that the lock or the link of the session is gone.
	Lost Class = "lock lost"
	// Refused says that the entity or the rights are not what they should be.
	// Waiting does not mend it, an operator does.
	Refused Class = "refused"
	// Busy says that the service is throttling, or could not do it this time.
	Busy Class = "busy"
	// Cancelled is our own deadline or cancellation.
	Cancelled Class = "cancelled"
	// Broken is the connection, or something nobody has seen yet.
	Broken Class = "broken"
)

// conditions are those of AMQP errors:
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-troubleshoot
var conditions = map[amqp.ErrCond]Class{
	"com.microsoft:timeout":                  NoSession,
	"com.microsoft:session-lock-lost":        Lost,
	"com.microsoft:message-lock-lost":        Lost,
	"com.microsoft:session-cannot-be-locked": Lost,
	amqp.ErrCondDetachForced:                 Lost,
	amqp.ErrCondStolen:                       Lost,
	"com.microsoft:server-busy":              Busy,
	"com.microsoft:operation-cancelled":      Busy,
	amqp.ErrCondResourceLimitExceeded:        Busy,
	amqp.ErrCondUnauthorizedAccess:           Refused,
	amqp.ErrCondNotFound:                     Refused,
	amqp.ErrCondNotAllowed:                   Refused,
	amqp.ErrCondNotImplemented:               Refused,
	amqp.ErrCondResourceDeleted:              Refused,
	"com.microsoft:entity-disabled":          Refused,
	// Service Bus does not redirect. Where something in between does, it is named
	// and not followed: a token would go to whoever it names.
	amqp.ErrCondLinkRedirect: Refused,
}

// OfCondition says what a condition means; false where nobody knows it.
func OfCondition(condition amqp.ErrCond) (Class, bool) {
	c, known := conditions[condition]
	return c, known
}

// codes are those of answers to requests, as HTTP has them.
var codes = map[int]Class{
	401: Refused, 403: Refused, 404: Refused, 410: Lost,
	408: Busy, 429: Busy, 500: Busy, 503: Busy,
}

// OfCode says what the code of an answer that has no condition means; Broken where nobody
// knows it.
func OfCode(code int) Class {
	if c, known := codes[code]; known {
		return c
	}
	return Broken
}

// Undecodable tells whether a link has ended because go-amqp could not decode a message
// (v1.7.0, Receiver.muxReceive): it ends the link by itself, and says so by its text alone.
func Undecodable(err error) bool {
	e, ok := errors.AsType[*amqp.LinkError](err)
	return ok && e.RemoteErr == nil && strings.HasPrefix(e.Error(), string(amqp.ErrCondInternalError)+": ")
}

// Classify says what an error of AMQP, or of getting a token, means. What it does
// not know counts as broken, which never leads to a lost message.
func Classify(err error) Class {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Cancelled
	}
	// The condition of a connection's end is not about the entity.
	if _, ok := errors.AsType[*amqp.ConnError](err); ok {
		return Broken
	}
	if e, ok := errors.AsType[*amqp.Error](err); ok {
		if c, known := OfCondition(e.Condition); known {
			return c
		}
	}
	if _, ok := errors.AsType[interface {
		error
		NonRetriable()
	}](err); ok {
		return Refused
	}
	return Broken
}
