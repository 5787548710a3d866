package servicebus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

type badCredentials struct{ error }

func (badCredentials) NonRetriable() {}

func TestClassify(t *testing.T) {
	t.Parallel()
	condition := func(c amqp.ErrCond) error { return &amqp.Error{Condition: c, Description: "text"} }
	tests := []struct {
		name string
		err  error
		want class
	}{
		{"no session within the time", &azservicebus.Error{Code: azservicebus.CodeTimeout}, noSession},
		{"no session, as the service says it", condition("com.microsoft:timeout"), noSession},
		{"a lost lock", &azservicebus.Error{Code: azservicebus.CodeLockLost}, lost},
		{"a lost session lock, as the service says it", condition("com.microsoft:session-lock-lost"), lost},
		{"a session that another has taken", condition("com.microsoft:session-cannot-be-locked"), lost},
		{"a link that the service cuts", &amqp.LinkError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondDetachForced}}, lost},
		{"a link closed before", &azservicebus.Error{Code: azservicebus.CodeClosed}, lost},
		{"a link taken over", condition(amqp.ErrCondStolen), lost},
		{"wrong credentials", &azservicebus.Error{Code: azservicebus.CodeUnauthorizedAccess}, refused},
		{"credentials that can not be had", fmt.Errorf("get token: %w", badCredentials{errors.New("no such tenant")}), refused},
		{"an entity that is not there", &azservicebus.Error{Code: azservicebus.CodeNotFound}, refused},
		{"a subscription without sessions", condition(amqp.ErrCondNotAllowed), refused},
		{"a disabled entity", condition("com.microsoft:entity-disabled"), refused},
		{"throttling", condition("com.microsoft:server-busy"), busy},
		{"throttling in so many words", fmt.Errorf("accept: %w", condition("com.microsoft:server-busy")), busy},
		{"too many links", condition(amqp.ErrCondResourceLimitExceeded), busy},
		{"our own deadline", fmt.Errorf("accept: %w", context.DeadlineExceeded), cancelled},
		{"our own cancellation", context.Canceled, cancelled},
		{"a lost connection", &azservicebus.Error{Code: azservicebus.CodeConnectionLost}, broken},
		{"a closed socket", io.EOF, broken},
		{"a connection that the service ends", &amqp.ConnError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondNotAllowed}}, broken},
		{"an error that nobody knows", errors.New("odd"), broken},
		{"a condition that nobody knows", condition("com.example:odd"), broken},
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
