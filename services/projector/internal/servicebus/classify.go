package servicebus

import (
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/services/projector/internal/namespace"
)

// classify says what an error of the client means. What it does not know counts
// as broken, which leads to a new connection and never to a lost message.
func classify(err error) namespace.Class {
	common := namespace.Classify(err)
	switch {
	case common == namespace.Cancelled:
		return common
	case errors.Is(err, errUsedUp{}):
		return namespace.Broken // not retriable, so that the SDK does not connect again by itself
	}
	if e, ok := errors.AsType[*azservicebus.Error](err); ok {
		switch e.Code {
		case azservicebus.CodeTimeout:
			return namespace.NoSession
		case azservicebus.CodeLockLost, azservicebus.CodeClosed:
			return namespace.Lost
		case azservicebus.CodeUnauthorizedAccess, azservicebus.CodeNotFound:
			return namespace.Refused
		}
	}
	// The client does not tell the condition of an answer (azservicebus v1.11.0, RPCError).
	if e, ok := errors.AsType[interface {
		error
		RPCCode() int
	}](err); ok {
		return namespace.OfCode(e.RPCCode())
	}
	return common
}
