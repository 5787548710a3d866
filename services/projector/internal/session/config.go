package session

import "time"

// Config bounds the engine. Every field must be above 0, but KeepTime.
type Config struct {
	// MaxSessions is how many sessions are held at once at most, but for those that are
	// about to be given back: as many besides.
	MaxSessions int
	// AcceptFloor is how many accepts wait while there is nothing to do; they
	// grow to MaxSessions as soon as sessions come.
	AcceptFloor int
	// AcceptTime is how long one accept waits for a session.
	AcceptTime time.Duration
	// AcceptGrace is how much longer an accept may take to answer before it
	// counts as hung.
	AcceptGrace time.Duration

	// BatchSize is how many messages are received and applied at once.
	BatchSize int
	// MaxBytes is how many bytes of messages are asked for and not settled at once,
	// in all holds together: see budget.
	MaxBytes int64
	// FirstMessageTime is how long a fresh hold waits for its first message.
	FirstMessageTime time.Duration
	// HoldTime and HoldMessages end a hold that still has messages, so that
	// others get their turn.
	HoldTime     time.Duration
	HoldMessages int
	// KeepTime is how long a steady session that has run empty is kept while no
	// other has messages; 0 keeps none.
	KeepTime time.Duration

	// LockMargin is how long before the lock's end work on the session stops.
	LockMargin time.Duration
	// RetryInitial and RetryMax space out attempts after a failed apply or a
	// failed accept.
	RetryInitial, RetryMax time.Duration
	// RestInitial and RestMax are how long a session is left alone that alone could
	// not be applied: the first time, and at most.
	RestInitial, RestMax time.Duration
	// RestBytes is how much memory the link of a session at rest takes, beside a buffer for
	// its heaviest message, and Copies how much memory one of MaxBytes stands for: a
	// message is in memory several times.
	RestBytes, Copies int64
	// RetryTime is how long a batch is tried again before its session is given back.
	RetryTime time.Duration

	// Paused tells that no more sessions are to be taken for now; nil for never.
	// Those that are held go on.
	Paused func() bool

	// MaxSettles is how many settlements of one session run at once.
	MaxSettles int
	// SettleTime bounds one settlement.
	SettleTime time.Duration
	// CloseTime bounds giving a session back.
	CloseTime time.Duration
	// DrainTime bounds everything between the end of Run's context and Run's return.
	DrainTime time.Duration
}

// Defaults returns the configuration that fits many short sessions beside a few
// long ones.
func Defaults() Config {
	return Config{
		MaxSessions:      64,
		AcceptFloor:      8,
		AcceptTime:       10 * time.Second,
		AcceptGrace:      10 * time.Second,
		BatchSize:        100,
		MaxBytes:         64 << 20,
		FirstMessageTime: 5 * time.Second,
		HoldTime:         5 * time.Second,
		HoldMessages:     5000,
		KeepTime:         time.Second,
		LockMargin:       2 * time.Second,
		RetryInitial:     50 * time.Millisecond,
		RetryMax:         5 * time.Second,
		RestInitial:      time.Second,
		RestMax:          30 * time.Second,
		RestBytes:        128 << 10,
		Copies:           6,
		RetryTime:        time.Minute,
		MaxSettles:       128,
		SettleTime:       5 * time.Second,
		CloseTime:        5 * time.Second,
		DrainTime:        17 * time.Second,
	}
}
