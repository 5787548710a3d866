package sandbox

import "changerelay/services/e2e/internal/campaign/mutation/guard"

// busGuards are those of Service Bus.
func busGuards() []guard.Guard {
	const (
		bus    = "services/sandbox/internal/servicebus/"
		broker = bus + "broker"
	)
	return []guard.Guard{
		{
			Name:    "sandbox: a deferred message outlives its time until somebody asks for it",
			File:    broker + "/entry.go",
			Cut:     "if e.lock == nil && e.state != entity.StateDeferred {",
			With:    "if e.lock == nil {",
			Package: broker,
			Tests:   []string{"TestSend_ADeferredMessageExpiresWhenItIsAskedFor"},
		},
		{
			Name:    "sandbox: a deferred message that has outlived its time can be peeked at",
			File:    broker + "/look.go",
			Cut:     "(e.state == entity.StateDeferred || !e.expired(now))",
			With:    "!e.expired(now)",
			Package: broker,
			Tests:   []string{"TestSend_ADeferredMessageExpiresWhenItIsAskedFor"},
		},
		{
			Name:    "sandbox: a deferred message that has outlived its time is not received",
			File:    broker + "/deferred.go",
			Cut:     "if e.expired(now) {",
			With:    "if e.expired(now) && false {",
			Package: broker,
			Tests:   []string{"TestSend_ADeferredMessageExpiresWhenItIsAskedFor"},
		},
	}
}
