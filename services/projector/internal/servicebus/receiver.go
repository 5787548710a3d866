package servicebus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/services/projector/internal/decodable"
	"changerelay/services/projector/internal/session"
)

const (
	// maxDescription bounds the description of a dead-lettered message in bytes.
	maxDescription = 4096
	// settleMost is less than the least time, 3.2 s, after which the client tries by itself
	// again what the service throttles (azservicebus v1.11.0, settleWithRetries).
	settleMost = 3 * time.Second
)

// receiver is a held session.
type receiver struct {
	inner     *azservicebus.SessionReceiver
	sessionID string
	granted   time.Time
	linger    time.Duration
	rate      *rate
	each      int64 // what a message may weigh, in bytes
	leftovers *sync.WaitGroup
	refused   *decodable.Refused
}

func (r *receiver) SessionID() string { return r.sessionID }

func (r *receiver) LockedUntil() time.Time { return r.granted }

// Fits implements session.Fitter.
func (r *receiver) Fits(limit int, each int64) int {
	r.each = each
	return r.rate.fits(limit, each)
}

func (r *receiver) Receive(ctx context.Context, limit int) ([]session.Message, error) {
	began := time.Now()
	received, err := readable(func() ([]*azservicebus.ReceivedMessage, error) {
		return r.inner.ReceiveMessages(ctx, limit, &azservicebus.ReceiveMessagesOptions{
			// It is for all messages after the first together.
			TimeAfterFirstMessage: r.linger + r.rate.takes(int64(limit)*r.each),
		})
	})
	messages := make([]session.Message, len(received))
	bytes := int64(0)
	for i, m := range received {
		messages[i] = convert(m)
		bytes += int64(len(m.Body))
	}
	r.rate.note(bytes, time.Since(began))
	if err != nil {
		err = fmt.Errorf("receive from session %q: %w", r.sessionID, err)
	}
	return messages, r.orUndecodable(err)
}

// RenewLock implements session.Receiver. The client writes LockedUntil without
// a lock, so only the one goroutine that renews may read it.
func (r *receiver) RenewLock(ctx context.Context) (time.Time, error) {
	if err := r.inner.RenewSessionLock(ctx, nil); err != nil {
		return time.Time{}, fmt.Errorf("renew lock of session %q: %w", r.sessionID, orBusy(err))
	}
	return r.inner.LockedUntil(), nil
}

// Settle implements session.Receiver. It tries once, and none of its errors is a
// *session.BusyError: a delivery whose settlement was refused counts as settled for its
// link (go-amqp v1.7.0, Receiver.messageDisposition), so that another try would not be
// sent, and would seem to go well. What is not settled within settleMost may have been
// throttled, or is answered late; it comes again.
func (r *receiver) Settle(ctx context.Context, m session.Message, v session.Verdict) error {
	handle, ok := m.Handle.(*azservicebus.ReceivedMessage)
	if !ok {
		return errors.New("the message is of another receiver")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, settleMost, errNotSettled)
	defer cancel()
	err := r.settle(ctx, handle, v)
	if ctx.Err() != nil {
		// Whatever the client says, which may have tried again.
		err = context.Cause(ctx)
	}
	if err == nil {
		return nil
	}
	return r.orUndecodable(err)
}

// errNotSettled ends a settlement that the client may try again.
var errNotSettled = errors.New("it was not settled in time, or the service throttles")

func (r *receiver) settle(ctx context.Context, handle *azservicebus.ReceivedMessage, v session.Verdict) error {
	if !v.DeadLetter {
		return r.inner.CompleteMessage(ctx, handle, nil)
	}
	description := v.Description
	if len(description) > maxDescription {
		description = strings.ToValidUTF8(description[:maxDescription], "")
	}
	return r.inner.DeadLetterMessage(ctx, handle, &azservicebus.DeadLetterOptions{
		Reason:           &v.Reason,
		ErrorDescription: &description,
	})
}

// Close implements session.Receiver. The client first waits for its releaser,
// whatever the context says, for up to a minute on a dead link; past ctx's end
// that goes on in the background.
func (r *receiver) Close(ctx context.Context) error {
	closed := make(chan error, 1)
	r.leftovers.Go(func() { closed <- r.inner.Close(ctx) })
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
