package projectorbench

import (
	"context"
	"strings"
	"time"

	"changerelay/services/e2e/internal/bench/stage"
)

// SessionRates are what one repetition measured of the ways to take sessions.
// The bare ones are loops in this process, in messages a second.
type SessionRates struct {
	// AMQP and SDK are the projector with SERVICEBUS_RECEIVER set to them.
	AMQP, SDK Drained
	// BareSDK only receives and settles. BareAMQP writes, too; it is 0 where the
	// servers ask for more than the sandbox does.
	BareSDK, BareAMQP float64
}

// Sessions fills the stage's topic and empties a subscription by each way to
// take sessions, with a time added to each round trip.
func Sessions(ctx context.Context, s *stage.Stage, shape Shape, by time.Duration) (r SessionRates, err error) {
	err = filled(ctx, s, shape, by, func(ctx context.Context, b bench) error {
		receiver := func(name string) map[string]string { return map[string]string{"SERVICEBUS_RECEIVER": name} }
		var err error
		if r.AMQP, err = b.relay(ctx, 1, projectorSubscription, receiver("amqp")); err != nil {
			return err
		}
		if r.SDK, err = b.relay(ctx, 1, sdkSubscription, receiver("sdk")); err != nil {
			return err
		}
		took, err := b.rawSessions(ctx, rawSubscription)
		if err != nil {
			return err
		}
		r.BareSDK = float64(shape.total()) / took.Seconds()
		if !strings.Contains(b.endpoints.ServiceBus, "UseDevelopmentEmulator=true") {
			return nil
		}
		if took, err = b.bareSessions(ctx, bareSubscription); err != nil {
			return err
		}
		r.BareAMQP = float64(shape.total()) / took.Seconds()
		return nil
	})
	return r, err
}
