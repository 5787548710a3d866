package servicebus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"changerelay/services/publisher/internal/relay"
)

func answer(condition string) error {
	return &amqp.Error{Condition: amqp.ErrCond(condition), Description: "said the service"}
}

// credentialError is how azidentity marks a credential that stays refused.
type credentialError struct{}

func (credentialError) Error() string { return "no such tenant" }
func (credentialError) NonRetriable() {}

func TestFailedSendsAreClassified(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want relay.Class
	}{
		"the SDK finds the message too large":     {azservicebus.ErrMessageTooLarge, relay.TooLarge},
		"the service finds the message too large": {answer("amqp:link:message-size-exceeded"), relay.TooLarge},
		"busy":                            {answer("com.microsoft:server-busy"), relay.Throttled},
		"the service's own timeout":       {answer("com.microsoft:timeout"), relay.Transient},
		"an operation was cancelled":      {answer("com.microsoft:operation-cancelled"), relay.Transient},
		"the link was detached":           {answer("amqp:link:detach-forced"), relay.Transient},
		"the connection was forced":       {answer("amqp:connection:forced"), relay.Transient},
		"an internal error":               {answer("amqp:internal-error"), relay.Transient},
		"no credit came in time":          {answer("amqp:link:transfer-limit-exceeded"), relay.Transient},
		"the topic does not exist":        {answer("amqp:not-found"), relay.Blocked},
		"the topic is disabled":           {answer("com.microsoft:entity-disabled"), relay.Blocked},
		"the topic is full":               {answer("amqp:resource-limit-exceeded"), relay.Blocked},
		"the key is wrong":                {answer("amqp:unauthorized-access"), relay.Blocked},
		"sending is not allowed":          {answer("amqp:not-allowed"), relay.Blocked},
		"an argument is refused":          {answer("com.microsoft:argument-error"), relay.Blocked},
		"a condition nobody knows":        {answer("com.example:new"), relay.Transient},
		"a credential that stays refused": {fmt.Errorf("token: %w", credentialError{}), relay.Blocked},
		"the send took too long":          {context.DeadlineExceeded, relay.Transient},
		"the connection ended":            {io.EOF, relay.Transient},
		"a link error with the condition": {&amqp.LinkError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondNotFound}}, relay.Blocked},
		"anything else":                   {errors.New("unheard of"), relay.Transient},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := classify(fmt.Errorf("send: %w", tt.err)); got != tt.want {
				t.Errorf("classify(%v) = %s, want %s", tt.err, got, tt.want)
			}
		})
	}
}

func TestTheConnectionIsDoubtedOnlyWhereItMayBeAtFault(t *testing.T) {
	t.Parallel()
	for class, want := range map[relay.Class]bool{
		relay.Transient: true, relay.Blocked: true, relay.Throttled: false, relay.TooLarge: false,
	} {
		if got := doubtful(class); got != want {
			t.Errorf("doubtful(%s) = %v, want %v", class, got, want)
		}
	}
}

func TestABrokenConnectionStringIsRefusedWithoutQuotingIt(t *testing.T) {
	t.Parallel()
	for _, connection := range []string{"nonsense", "Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey", "Endpoint=sb://x/;SharedAccessKey=canary"} {
		_, err := WithConnectionString(connection, Options{})()
		if err == nil {
			t.Errorf("%q was taken", connection)
			continue
		}
		if got := err.Error(); got != "the connection string is not one" {
			t.Errorf("error is %q", got)
		}
	}
}
