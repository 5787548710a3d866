package entity

import (
	"time"

	"github.com/google/uuid"
)

// Message is what a sender hands in. The broker keeps it, shares it between
// subscriptions and never changes it: after Send nobody may.
type Message struct {
	MessageID        string
	SessionID        *string // nil is absent, which is not the same as empty
	PartitionKey     string  // empty is absent
	Subject          string
	To               string
	ReplyTo          string
	ReplyToSessionID string
	CorrelationID    string
	ContentType      string

	TimeToLive           time.Duration // 0: the entity's default
	ScheduledEnqueueTime time.Time     // zero or past: at once

	// Properties are the application properties: string, bool, integers,
	// floats, time.Time, uuid.UUID, []byte. Filters look at them.
	Properties map[string]any

	// Payload is the encoded message, opaque to the broker. Its length is the
	// message's size in every limit and quota.
	Payload []byte
}

// State is where a message stands in its entity.
type State int32

// The states, with the numbers of the annotation x-opt-message-state.
const (
	StateActive    State = 0
	StateDeferred  State = 1
	StateScheduled State = 2
)

// Delivery is one message as a receiver, a peek or a deferred receive sees it.
type Delivery struct {
	*Message

	SequenceNumber         int64
	EnqueuedSequenceNumber int64 // the number given where the message was first accepted; 0 when that was here
	Partition              int16
	EnqueuedTime           time.Time
	ExpiresAt              time.Time // zero: never
	State                  State

	// LockToken and LockedUntil are zero for peeks and in receive-and-delete.
	// On a session entity LockedUntil is the session's.
	LockToken   uuid.UUID
	LockedUntil time.Time

	// DeliveryCount is the number of earlier deliveries that failed, which is
	// what the AMQP header's delivery-count carries: 0 at the first delivery.
	DeliveryCount uint32

	DeadLetterSource      string // the entity's path, in a dead-letter queue
	DeadLetterReason      string
	DeadLetterDescription string

	// Modified are application properties set by abandon, defer and
	// dead-letter, to be laid over the message's own. Not to be changed.
	Modified map[string]any

	// Size is about what payload and changed properties take together, in bytes.
	Size int64
}

// Outcome is what a receiver decides about a locked message: Complete,
// Abandon, DeadLetter, Defer or Release.
type Outcome interface{ outcome() }

// Complete removes the message.
type Complete struct{}

// Abandon makes the message available again, at its place, and counts the
// delivery. One delivery too many moves it to the dead-letter queue.
type Abandon struct{ Properties map[string]any }

// DeadLetter moves the message to the dead-letter queue.
type DeadLetter struct {
	Reason      string
	Description string
	Properties  map[string]any
}

// Defer sets the message aside: only ReceiveDeferred finds it again.
type Defer struct{ Properties map[string]any }

// Release makes the message available again, at its place, without counting
// the delivery.
type Release struct{}

func (Complete) outcome()   {}
func (Abandon) outcome()    {}
func (DeadLetter) outcome() {}
func (Defer) outcome()      {}
func (Release) outcome()    {}
