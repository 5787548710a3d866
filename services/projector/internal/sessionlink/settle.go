package sessionlink

import (
	"context"
	"errors"
	"strings"

	"github.com/Azure/go-amqp"

	"changerelay/services/projector/internal/namespace"
	"changerelay/services/projector/internal/session"
)

// How a message is dead-lettered, and the bound of its description in bytes.
const (
	deadLetter            = "com.microsoft:dead-letter"
	deadLetterReason      = "DeadLetterReason"
	deadLetterDescription = "DeadLetterErrorDescription"
	maxDescription        = 4096
)

var errForeignMessage = errors.New("the message is of another receiver")

// Settle implements session.Receiver. It returns when the service has answered;
// many at once cost one round trip.
//
// A delivery whose disposition was refused counts as settled for the link
// (go-amqp v1.7.0, Receiver.messageDisposition): another disposition would not
// be sent, and would seem to go well. So it is settled by a request.
func (r *receiver) Settle(ctx context.Context, m session.Message, v session.Verdict) error {
	delivery, ok := m.Handle.(*amqp.Message)
	if !ok {
		return errForeignMessage
	}
	var err error
	onLink := !r.wasThrottled(delivery)
	if onLink {
		err = r.disposeWithin(ctx, delivery, v)
	} else {
		err = r.settleByRequest(ctx, delivery, v)
	}
	switch {
	case onLink && endsLink(err):
		// Even where it ends because the service throttles, waiting does not bring it back.
		r.doubted.Store(true)
		return r.orUndecodable(err)
	case err == nil:
		r.wire.heard()
		r.settled.Add(1)
		r.noteSettled(delivery)
	case classify(err) == namespace.Busy:
		r.wire.heard()
		r.noteThrottled(delivery)
	default:
		r.doubted.Store(true)
	}
	return r.orUndecodable(orBusy(err))
}

// disposeWithin settles a delivery on its link, and ends with ctx: go-amqp's disposition
// does not (v1.7.0, Receiver.sendDisposition), and while the link ends it is not taken.
func (r *receiver) disposeWithin(ctx context.Context, delivery *amqp.Message, v session.Verdict) error {
	disposed := make(chan error, 1)
	if !r.wire.running.Go(func() { disposed <- r.dispose(ctx, delivery, v) }) {
		return errClosed
	}
	select {
	case err := <-disposed:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// dispose settles a delivery on its link.
func (r *receiver) dispose(ctx context.Context, delivery *amqp.Message, v session.Verdict) error {
	if v.DeadLetter {
		return r.link.RejectMessage(ctx, delivery, &amqp.Error{Condition: deadLetter, Info: map[string]any{
			deadLetterReason: v.Reason, deadLetterDescription: description(v),
		}})
	}
	return r.link.AcceptMessage(ctx, delivery)
}

// settleByRequest settles a delivery by its lock token, over $management.
func (r *receiver) settleByRequest(ctx context.Context, delivery *amqp.Message, v session.Verdict) error {
	token, err := lockToken(delivery)
	if err != nil {
		return err
	}
	settlement := map[string]any{"lock-tokens": []amqp.UUID{token}, "session-id": r.sessionID, "disposition-status": "completed"}
	if v.DeadLetter {
		settlement["disposition-status"] = "suspended"
		settlement["deadletter-reason"], settlement["deadletter-description"] = v.Reason, description(v)
	}
	_, err = r.wire.management.ask(ctx, r.request(ctx, "com.microsoft:update-disposition", settlement))
	return err
}

// lockToken is what a delivery is locked by. The tag has it as .NET writes a
// GUID: the first three of its parts with the lowest byte first.
func lockToken(delivery *amqp.Message) (token amqp.UUID, err error) {
	tag := delivery.DeliveryTag
	if len(tag) != len(token) {
		return token, errors.New("the delivery's tag is no lock token")
	}
	order := [...]int{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15}
	for i, from := range order {
		token[i] = tag[from]
	}
	return token, nil
}

// description is the verdict's, no longer than the service takes.
func description(v session.Verdict) string {
	if len(v.Description) <= maxDescription {
		return v.Description
	}
	return strings.ToValidUTF8(v.Description[:maxDescription], "")
}

func (r *receiver) wasThrottled(delivery *amqp.Message) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.throttled[delivery]
}

// noteSettled lets go of a delivery that had been throttled.
func (r *receiver) noteSettled(delivery *amqp.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.throttled, delivery)
}

func (r *receiver) noteThrottled(delivery *amqp.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.throttled == nil {
		r.throttled = map[*amqp.Message]bool{}
	}
	r.throttled[delivery] = true
}
