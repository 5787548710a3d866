package servicebus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

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

func TestClassify_FailedSendsAreClassified(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want relay.Class
	}{
		"a link of its own finds the message too large": {tooLargeError{azservicebus.ErrMessageTooLarge}, relay.TooLarge},
		"any other link finds a message too large":      {azservicebus.ErrMessageTooLarge, relay.Transient},
		"the service ends a link for a message's size":  {answer("amqp:link:message-size-exceeded"), relay.Transient},
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
		"sending is not allowed":          {answer("amqp:not-allowed"), relay.Refused},
		"an argument is refused":          {answer("com.microsoft:argument-error"), relay.Refused},
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

func TestAdvised_IsWhatABusyServiceNames(t *testing.T) {
	t.Parallel()
	says := func(condition amqp.ErrCond, text string) error {
		return fmt.Errorf("send: %w", &amqp.Error{Condition: condition, Description: text})
	}
	for name, tt := range map[string]struct {
		err  error
		want time.Duration
	}{
		"the namespace": {says("com.microsoft:server-busy", "The request was terminated because the namespace shop is being throttled. Error code : 50009. Please wait 2 seconds and try again."), 2 * time.Second},
		"the entity":    {says("com.microsoft:server-busy", "The request was terminated because the entity is being throttled. Error code : 50002. Sub error : 102. Please wait 4 seconds and try again."), 4 * time.Second},
		"no time":       {says("com.microsoft:server-busy", "Error code : 50009."), 0},
		"far too long":  {says("com.microsoft:server-busy", "Please wait 9999 seconds"), time.Minute},
		"no throttling": {says("com.microsoft:entity-disabled", "Please wait 4 seconds"), 0},
	} {
		if got := advised(classify(tt.err), tt.err); got != tt.want {
			t.Errorf("%s: advised to wait %s, want %s", name, got, tt.want)
		}
	}
}

func TestClassify_TheConnectionIsDoubtedOnlyWhereItMayBeAtFault(t *testing.T) {
	t.Parallel()
	busy := &amqp.Error{Condition: "com.microsoft:server-busy"}
	for name, tt := range map[string]struct {
		class relay.Class
		err   error
		want  bool
	}{
		"transient":                       {relay.Transient, io.EOF, true},
		"blocked":                         {relay.Blocked, answer("amqp:not-found"), true},
		"throttled":                       {relay.Throttled, busy, false},
		"refused":                         {relay.Refused, answer("amqp:not-allowed"), false},
		"too large":                       {relay.TooLarge, azservicebus.ErrMessageTooLarge, false},
		"a link that ended as busy":       {relay.Throttled, &amqp.LinkError{RemoteErr: busy}, true},
		"a session that ended as busy":    {relay.Throttled, &amqp.SessionError{RemoteErr: busy}, true},
		"a connection that ended as busy": {relay.Throttled, &amqp.ConnError{RemoteErr: busy}, true},
	} {
		if got := doubtful(tt.class, fmt.Errorf("send: %w", tt.err)); got != tt.want {
			t.Errorf("%s: doubtful = %v, want %v", name, got, tt.want)
		}
	}
}

func TestClassify_ABrokenConnectionStringIsRefusedWithoutQuotingIt(t *testing.T) {
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
