package sessionlink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/Azure/go-amqp"

	"changerelay/services/projector/internal/namespace"
)

type badCredentials struct{ error }

func (badCredentials) NonRetriable() {}

func TestClassify_SaysWhatAnErrorMeans(t *testing.T) {
	t.Parallel()
	condition := func(c amqp.ErrCond) error { return &amqp.Error{Condition: c} }
	tests := []struct {
		name string
		err  error
		want namespace.Class
	}{
		{"no session in time", condition("com.microsoft:timeout"), namespace.NoSession},
		{"a lost lock", condition("com.microsoft:session-lock-lost"), namespace.Lost},
		{"a link taken away", &amqp.LinkError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondDetachForced}}, namespace.Lost},
		{"a link taken over", condition(amqp.ErrCondStolen), namespace.Lost},
		{"a lock that cannot be renewed", fmt.Errorf("ask: %w", &answerError{code: 410, condition: "com.microsoft:session-lock-lost"}), namespace.Lost},
		{"a lock that is gone by the code alone", &answerError{code: 410}, namespace.Lost},
		{"a claim that is refused", &answerError{code: 401}, namespace.Refused},
		{"a claim for nothing", &answerError{code: 404}, namespace.Refused},
		{"a busy node", &answerError{code: 503}, namespace.Busy},
		{"a node that did not do it in its time", &answerError{code: 408, condition: "com.microsoft:timeout"}, namespace.Busy},
		{"an answer that nobody knows", &answerError{code: 418}, namespace.Broken},
		{"wrong credentials", condition(amqp.ErrCondUnauthorizedAccess), namespace.Refused},
		{"credentials that cannot be had", fmt.Errorf("get a token: %w", badCredentials{errors.New("no such tenant")}), namespace.Refused},
		{"an entity that is not there", condition(amqp.ErrCondNotFound), namespace.Refused},
		{"a subscription without sessions", condition(amqp.ErrCondNotAllowed), namespace.Refused},
		{"a disabled entity", condition("com.microsoft:entity-disabled"), namespace.Refused},
		{"a redirect of a link", condition(amqp.ErrCondLinkRedirect), namespace.Refused},
		{"throttling", fmt.Errorf("attach: %w", condition("com.microsoft:server-busy")), namespace.Busy},
		{"too many links", condition(amqp.ErrCondResourceLimitExceeded), namespace.Busy},
		{"our own deadline", fmt.Errorf("accept: %w", context.DeadlineExceeded), namespace.Cancelled},
		{"our own cancellation", context.Canceled, namespace.Cancelled},
		{"a closed socket", io.EOF, namespace.Broken},
		{"an AMQP session that the service ends", &amqp.SessionError{RemoteErr: &amqp.Error{Condition: amqp.ErrCondErrantLink}}, namespace.Broken},
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

func TestAttach_IsAnsweredByWhatTheServiceSaysOfTheLink(t *testing.T) {
	t.Parallel()
	refusal := &amqp.Error{Condition: "com.microsoft:timeout"}
	for err, want := range map[error]bool{
		refusal:                                true,
		&amqp.SessionError{RemoteErr: refusal}: false,
		&amqp.ConnError{RemoteErr: refusal}:    false,
		context.DeadlineExceeded:               false,
		io.EOF:                                 false,
	} {
		if got := isAnswer(err); got != want {
			t.Errorf("%T: got %t, want %t", err, got, want)
		}
	}
}
