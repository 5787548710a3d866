package servicebus

import (
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// errUnreadable means that the client has panicked at a message, with which others may have
// come that are not to be had either.
var errUnreadable = errors.New("the client cannot read a message (see the runbook, ChangeRelayMessageUndecodable)")

// readable is what a call of the client returns. The client asserts the types of properties
// and annotations that a sender can set, such as DeadLetterReason, and panics when one is of
// another.
func readable(call func() ([]*azservicebus.ReceivedMessage, error)) (messages []*azservicebus.ReceivedMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			messages, err = nil, fmt.Errorf("%w: %v", errUnreadable, p)
		}
	}()
	return call()
}
