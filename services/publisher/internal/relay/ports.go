package relay

import (
	"context"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
)

// Change is one change as the source wrote it.
type Change struct {
	// Raw is the whole change event, a BSON document. The relay keeps it until
	// the change is finished; nobody may write to it.
	Raw []byte
	// Token resumes the stream right after the change.
	Token []byte
	// Position is where the change stands in its stream.
	Position contract.Position
	// Time is the change's cluster time.
	Time time.Time
	// Resent is set where the change is sent again, beside the stream.
	Resent *Resent
}

// Resent says for which resend a change is sent again. Such a change is no part of the
// stream: the checkpoint does not depend on it, and it is never parked, because the
// stream has dealt with it before, or will.
type Resent struct {
	contract.Resend
	// Behind is the last point of the stream before it; zero where there is none.
	Behind Point
	// Finished is called once for each change: with what became of it, and of a failed
	// one with why. It must not block.
	Finished func(fate Fate, aggregateID, reason string)
}

// Fate is what became of a change that was sent again.
type Fate int

// The fates.
const (
	// Accepted: the topic has its message.
	Accepted Fate = iota
	// Passed: it carries no event, or none of this partition.
	Passed
	// Failed: it cannot be sent.
	Failed
)

// Point is the place in the stream behind the change, once all before are finished.
func (c *Change) Point() Point {
	if c.Resent != nil {
		return c.Resent.Behind
	}
	event := checkpoint.Place{Position: c.Position}.Time()
	return Point{Token: c.Token, Position: c.Position, Event: event, AsOf: c.Time}
}

// Batch is what one read gives: changes in stream order, or none and how far
// the source has looked without finding any.
type Batch struct {
	Changes []Change
	// Idle is set when there are no changes: resuming at its token misses none.
	Idle Point
}

// readBatch is a batch with the time at which it was read.
type readBatch struct {
	Batch
	at time.Time
}

// Point is a place between the changes of a stream.
type Point struct {
	// Token resumes the stream there; nil is nowhere.
	Token    []byte
	Position contract.Position
	// Event is when the last change before it was made; zero where that is not known.
	Event checkpoint.ClusterTime
	// AsOf is the time up to which the stream is complete there.
	AsOf time.Time
}

// Source gives the changes of a stream, from where it was opened.
type Source interface {
	// Read waits a bounded time for changes. It recovers by itself from what may
	// pass; an error means that the stream cannot go on from where it stands,
	// or that ctx has ended.
	Read(ctx context.Context) (Batch, error)
}

// Mapper turns changes into events. It is pure.
type Mapper interface {
	// Map returns the event that a change carries; false where it carries none,
	// by the mapper's documented rule. An error says why a change that should
	// carry one cannot be mapped. Event.Term is left to the relay.
	Map(change Change) (contract.Event, bool, error)
}

// Sender sends messages: of one aggregate, unless Config.Mixed.
type Sender interface {
	// Send sends messages in order and returns how many of them, from the first
	// on, were accepted. An error is a *SendError about the message after those.
	Send(ctx context.Context, messages []contract.Message) (int, error)
}

// Parked is a change that was not sent.
type Parked struct {
	Change      Change
	Reason      string
	AggregateID string // empty where the change could not be mapped
	EventID     string // empty where the change could not be mapped
	Term        int64
}

// Parker keeps changes that were not sent where an operator sees them. Parking
// the same change again changes nothing. The context bounds an attempt: see
// Config.ParkTimeout.
type Parker interface {
	// Waits reports whether a change is parked already, and waits for an operator.
	Waits(ctx context.Context, change Change) (bool, error)
	// Full reports whether no more may be parked until some are dealt with: the relay
	// then ends with an *OverparkedError in front of the next.
	Full(ctx context.Context) (bool, error)
	Park(ctx context.Context, parked Parked) error
}

// Checkpointer keeps how far the stream was published: see checkpoint.Claimed.
type Checkpointer interface {
	Move(ctx context.Context, to checkpoint.Place) error
}

// Tracer follows changes, to show where time goes.
type Tracer interface {
	// Begin begins to follow a change that was read at readAt, and may have its
	// message say so.
	Begin(event contract.Event, message *contract.Message, readAt time.Time) Span
}

// Span follows one change. Its methods are called one after another, and do not
// block. Accepted or Parked is the last; neither is called when the term ends
// before: then the next leader follows the change anew.
type Span interface {
	// Failed says that a send failed, and will be made again.
	Failed(failure *SendError)
	Accepted()
	Parked(reason string)
}

// Class says what a failed send calls for.
type Class int

// The classes. An error of no known class is Transient: sending again is safe.
const (
	// Transient may pass: a connection was lost, an answer did not come.
	Transient Class = iota
	// Throttled asks to come back later.
	Throttled
	// Blocked needs an operator: the topic is gone, disabled or full, or we are
	// not allowed to send. It is tried again all the same, and recovers by itself.
	Blocked
	// TooLarge is about this message alone, and will not pass.
	TooLarge
	// Refused is the service's answer to what is in the message, or to how the
	// topic is set up: whether other messages are accepted tells which.
	Refused

	classes = iota
)

// Classes are all classes.
func Classes() []Class { return []Class{Transient, Throttled, Blocked, TooLarge, Refused} }

// String implements fmt.Stringer.
func (c Class) String() string {
	switch c {
	case Throttled:
		return "throttled"
	case Blocked:
		return "blocked"
	case TooLarge:
		return "too large"
	case Refused:
		return "refused"
	default:
		return "transient"
	}
}

// mayBeTheMessages reports whether a send that fails so may fail because of its
// message alone. That the topic is busy, full, gone or closed to us is no
// message's fault, however often one meets with it.
func (c Class) mayBeTheMessages() bool { return c == Transient || c == Refused }

// SendError is a failed send.
type SendError struct {
	Class Class
	Err   error
	// Wait is how long the service asks to wait; 0 where it does not say.
	Wait time.Duration
}

func (e *SendError) Error() string { return e.Class.String() + ": " + e.Err.Error() }

func (e *SendError) Unwrap() error { return e.Err }
