// Package publisher lists the guards of the publisher, in the order of a change's life.
package publisher

import (
	"slices"

	"changerelay/services/e2e/internal/campaign/mutation/guard"
)

// The packages whose guards are cut.
const (
	internal = "services/publisher/internal/"

	lease        = internal + "lease"
	mongostate   = internal + "mongostate"
	checkpoint   = internal + "checkpoint"
	relay        = internal + "relay"
	resend       = internal + "resend"
	changestream = internal + "changestream"
	backfill     = internal + "backfill"
	servicebus   = internal + "servicebus"
	app          = internal + "app"
	stream       = internal + "stream"
	command      = internal + "command"
	config       = internal + "config"
	status       = internal + "status"
	partition    = internal + "partition"
	slowlink     = internal + "slowlink"
	mapping      = internal + "mapping"
	adopt        = internal + "adopt"
)

// Guards are all guards of the publisher.
func Guards() []guard.Guard {
	return slices.Concat(
		leaseGuards(),
		streamGuards(),
		chunkGuards(),
		moveGuards(),
		claimGuards(),
		reroutedGuards(),
		relayGuards(),
		sendGuards(),
		readingGuards(),
		asideGuards(),
		resendGuards(),
		besideGuards(),
		resendGoneGuards(),
		eventsGuards(),
		adoptGuards(),
		copyGuards(),
		memoryGuards(),
		replayGuards(),
		keptAsideGuards(),
		decisionGuards(),
		reopenedGuards(),
		historyGuards(),
		scopeGuards(),
	)
}
