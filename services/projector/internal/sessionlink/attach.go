package sessionlink

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/go-amqp"

	"changerelay/services/projector/internal/namespace"
)

// What Service Bus adds to the attach of a link from which sessions come.
const (
	sessionFilter = "com.microsoft:session-filter"
	// sessionFilterCode is the filter's descriptor.
	sessionFilterCode = uint64(0x137000000c)
	// acceptTimeout is how long the service waits for a session, in milliseconds.
	acceptTimeout = "com.microsoft:timeout"
	// lockedUntil is when the session's lock ends, in ticks of .NET.
	lockedUntil = "com.microsoft:locked-until-utc"
)

// ticksAtEpoch is the Unix epoch in ticks of .NET: 100 ns each since the year 1.
const ticksAtEpoch = 621_355_968_000_000_000

var errNoID = errors.New("the service granted a session without its id")

// attach waits for the next session, for as long as the service is asked to wait
// plus answerTime.
func (w *wire) attach(ctx context.Context, wait time.Duration) (*receiver, error) {
	// The attach does not end with the caller: the service may have granted a session by
	// then, and somebody has to give it back.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait+w.cfg.answerTime)
	defer cancel()
	asked := time.Now()
	r, err := w.attachOnce(ctx, wait)
	if isUnauthorized(err) && ctx.Err() == nil {
		// The claim may have ended before it was put again.
		if err := w.claims.put(ctx, w.cfg.entity(), asked); err != nil {
			return nil, err
		}
		r, err = w.attachOnce(ctx, wait)
	}
	if ctx.Err() != nil && err != nil && w.silentSince(asked) {
		w.replace()
	}
	return r, err
}

func (w *wire) attachOnce(ctx context.Context, wait time.Duration) (*receiver, error) {
	lane, err := w.lane(ctx)
	if err != nil {
		return nil, err
	}
	name := rand.Text()
	came := w.frames.watch(name)
	defer w.frames.forget(name)
	link, err := lane.NewReceiver(ctx, w.cfg.entity(), &amqp.ReceiverOptions{
		Name:           name,
		Credit:         -1, // given out by hand
		SettlementMode: amqp.ReceiverSettleModeSecond.Ptr(),
		Filters:        []amqp.LinkFilter{amqp.NewLinkFilter(sessionFilter, sessionFilterCode, nil)},
		Properties:     map[string]any{acceptTimeout: uint32(wait.Milliseconds())},
	})
	if err != nil {
		if isAnswer(err) {
			w.heard()
		}
		// A refused link ends with a detach of the service. Its handle may be taken
		// again before the service has been told that it is free.
		w.drop(ctx, lane)
		return nil, err
	}
	w.heard()
	id, ok := link.LinkSourceFilterValue(sessionFilter).(string)
	if !ok {
		w.drop(ctx, lane)
		return nil, errNoID
	}
	w.refused.Forget(id)
	r := &receiver{wire: w, lane: lane, link: link, sessionID: id, came: came}
	if ticks, ok := link.Properties()[lockedUntil].(int64); ok {
		r.granted = time.Unix(0, (ticks-ticksAtEpoch)*100)
	}
	return r, nil
}

// isUnauthorized tells whether the service refuses for want of a claim.
func isUnauthorized(err error) bool {
	if err == nil || classify(err) != namespace.Refused {
		return false
	}
	if e, ok := errors.AsType[*answerError](err); ok {
		return e.code == http.StatusUnauthorized
	}
	e, ok := errors.AsType[*amqp.Error](err)
	return ok && e.Condition == amqp.ErrCondUnauthorizedAccess
}

// entity is the address of the subscription.
func (c *Config) entity() string { return fmt.Sprintf("%s/Subscriptions/%s", c.Topic, c.Subscription) }
