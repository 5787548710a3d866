// Package projector lists the guards of the projector, in the order of a message's life.
package projector

import (
	"slices"

	"changerelay/services/e2e/internal/campaign/mutation/guard"
)

// The packages whose guards are cut.
const (
	internal = "services/projector/internal/"

	session     = internal + "session"
	sessionlink = internal + "sessionlink"
	decodable   = internal + "decodable"
	servicebus  = internal + "servicebus"
	namespace   = internal + "namespace"
	delivery    = internal + "delivery"
	readmodel   = internal + "readmodel"
	rebuild     = internal + "rebuild"
	verify      = internal + "verify"
	app         = internal + "app"
	config      = internal + "config"
	watch       = internal + "watch"
	command     = internal + "command"
	expression  = internal + "expression"
	projection  = internal + "projection"
	cli         = internal + "cli"
)

// Guards are all guards of the projector.
func Guards() []guard.Guard {
	return slices.Concat(
		sessionGuards(),
		pauseGuards(),
		reachGuards(),
		linkGuards(),
		decodableGuards(),
		connectionGuards(),
		clientGuards(),
		deliveryGuards(),
		brakeGuards(),
		skipGuards(),
		haltNoteGuards(),
		positionGuards(),
		suspectGuards(),
		seenGuards(),
		ownerGuards(),
		feedGuards(),
		leftGuards(),
		storeGuards(),
		commitGuards(),
		boundGuards(),
		expressionGuards(),
		discardGuards(),
		viewGuards(),
		redriveGuards(),
		processGuards(),
		emptiedGuards(),
		beginningGuards(),
		conditionGuards(),
		codedGuards(),
		sourceGuards(),
		rebuildGuards(),
		rebuildProofGuards(),
		fillingGuards(),
		lostResentGuards(),
		likeGuards(),
		verifyGuards(),
		progressGuards(),
		readerGuards(),
	)
}
