package servicebus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"changerelay/services/projector/internal/namespace"
)

type badCredentials struct{ error }

func (badCredentials) NonRetriable() {}

// answer is a node's answer to a request, as the client has it.
type answer int

func (a answer) Error() string { return fmt.Sprintf("rpc: failed, status code %d", int(a)) }

func (a answer) RPCCode() int { return int(a) }

func TestClassify(t *testing.T) {
	t.Parallel()
	condition := func(c amqp.ErrCond) error { return &amqp.Error{Condition: c, Description: "text"} }
	tests := []struct {
		name string
		err  error
		want namespace.Class
	}{
		{"no session within the time", &azservicebus.Error{Code: azservicebus.CodeTimeout}, namespace.NoSession},
		{"no session, as the service says it", condition("com.microsoft:timeout"), namespace.NoSession},
		{"a lost lock", &azservicebus.Error{Code: azservicebus.CodeLockLost}, namespace.Lost},
		{"a lost session lock, as the service says it", condition("com.microsoft:session-lock-lost"), namespace.Lost},
		{"a session that another has taken", condition("com.microsoft:session-cannot-be-locked"), namespace.Lost},
		{"a link that the service cuts", &amqp.LinkError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondDetachForced}}, namespace.Lost},
		{"a link closed before", &azservicebus.Error{Code: azservicebus.CodeClosed}, namespace.Lost},
		{"a link taken over", condition(amqp.ErrCondStolen), namespace.Lost},
		{"wrong credentials", &azservicebus.Error{Code: azservicebus.CodeUnauthorizedAccess}, namespace.Refused},
		{"credentials that cannot be had", fmt.Errorf("get token: %w", badCredentials{errors.New("no such tenant")}), namespace.Refused},
		{"an entity that is not there", &azservicebus.Error{Code: azservicebus.CodeNotFound}, namespace.Refused},
		{"a subscription without sessions", condition(amqp.ErrCondNotAllowed), namespace.Refused},
		{"a disabled entity", condition("com.microsoft:entity-disabled"), namespace.Refused},
		{"throttling", condition("com.microsoft:server-busy"), namespace.Busy},
		{"throttling in so many words", fmt.Errorf("accept: %w", condition("com.microsoft:server-busy")), namespace.Busy},
		{"a busy node", fmt.Errorf("renew: %w", answer(503)), namespace.Busy},
		{"a node that could not do it this time", answer(500), namespace.Busy},
		{"an answer that nobody knows", answer(418), namespace.Broken},
		{"too many links", condition(amqp.ErrCondResourceLimitExceeded), namespace.Busy},
		{"our own deadline", fmt.Errorf("accept: %w", context.DeadlineExceeded), namespace.Cancelled},
		{"our own cancellation", context.Canceled, namespace.Cancelled},
		{"a lost connection", &azservicebus.Error{Code: azservicebus.CodeConnectionLost}, namespace.Broken},
		{"a client whose connection has ended", fmt.Errorf("accept: %w", errUsedUp{}), namespace.Broken},
		{"an entity that is deleted", condition(amqp.ErrCondResourceDeleted), namespace.Refused},
		{"a closed socket", io.EOF, namespace.Broken},
		{"a connection that the service ends", &amqp.ConnError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondNotAllowed}}, namespace.Broken},
		{"an error that nobody knows", errors.New("odd"), namespace.Broken},
		{"a condition that nobody knows", condition("com.example:odd"), namespace.Broken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := classify(tt.err); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
