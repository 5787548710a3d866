package session

import "sync/atomic"

// Counts is what the engine has done since it began. Fields may be read at any
// time.
type Counts struct {
	// Held is how many sessions are held at this moment, Accepting how many
	// accepts wait.
	Held, Accepting atomic.Int64

	// The results of accepts.
	Accepted, AcceptedNone, AcceptsUnanswered, AcceptsFailed, AcceptsHung, AcceptedLate atomic.Int64

	// Received, Completed and DeadLettered count messages; SettlesFailed
	// settlements without a good answer, SettlesThrottled those that the broker
	// asked to try again later.
	Received, Completed, DeadLettered, SettlesFailed, SettlesThrottled atomic.Int64

	// HeldNothing counts holds to which no message came in time.
	HeldNothing atomic.Int64

	// Resting is how many sessions are left alone at this moment because they alone
	// could not be applied.
	Resting atomic.Int64

	// Retries counts repeated applies; GivenBack holds that ended with messages
	// not settled; LocksLost those among them that ended for their lock;
	// Inversions those that ended for a sequence number that did not rise.
	Retries, GivenBack, LocksLost, Inversions atomic.Int64
}
