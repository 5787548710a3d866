package amqpserver_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

func equal[T comparable](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if got != want {
		tb.Errorf("got %s %v, want %v", what, got, want)
	}
}

func equalPtr[T comparable](tb testing.TB, what string, got, want *T) {
	tb.Helper()
	if got == nil || want == nil {
		if got != want {
			tb.Errorf("got %s %v, want %v", what, got, want)
		}
		return
	}
	equal(tb, what, *got, *want)
}

// wantCondition checks that err is an AMQP error of that condition.
func wantCondition(tb testing.TB, err error, condition string) {
	tb.Helper()
	var amqpErr *amqp.Error
	if !errors.As(err, &amqpErr) || string(amqpErr.Condition) != condition {
		tb.Fatalf("got error %v, want condition %s", err, condition)
	}
}

// wantCode checks that err is the SDK's error of that code.
func wantCode(tb testing.TB, err error, code azservicebus.Code) {
	tb.Helper()
	var sdkErr *azservicebus.Error
	if !errors.As(err, &sdkErr) || sdkErr.Code != code {
		tb.Fatalf("got error %v, want code %s", err, code)
	}
}

type receiver interface {
	ReceiveMessages(ctx context.Context, count int, o *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
}

// receive waits for n messages. It asks for exactly what is missing, so that the SDK has no surplus credit to hand back.
func receive(tb testing.TB, r receiver, n int) []*azservicebus.ReceivedMessage {
	tb.Helper()
	var got []*azservicebus.ReceivedMessage
	for len(got) < n {
		some, err := r.ReceiveMessages(tb.Context(), n-len(got), &azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: time.Minute})
		must(tb, err)
		got = append(got, some...)
	}
	return got
}

// eventually waits until check is true, or the test's own deadline ends it.
func eventually(tb testing.TB, what string, check func() bool) {
	tb.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !check() {
		select {
		case <-tb.Context().Done():
			tb.Fatalf("%s did not happen", what)
		case <-ticker.C:
		}
	}
}
