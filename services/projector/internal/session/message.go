package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"changerelay/pkg/contract"
)

// Message is one message of a held session.
type Message struct {
	contract.Message
	// SequenceNumber is the broker's number of the message. It rises within a session.
	SequenceNumber int64
	// EnqueuedAt is when the broker stored the message.
	EnqueuedAt time.Time
	// Handle is the receiver's own, for settling.
	Handle any
}

// OtherBody is the text of a body that is no data but an AMQP value or sequence; ""
// where there is neither (AMQP 1.0, section 3.2).
func OtherBody(value any, sequence [][]any) string {
	switch {
	case value != nil:
		return fmt.Sprintf("AMQP value: %v", value)
	case len(sequence) > 0:
		return fmt.Sprintf("AMQP sequence: %v", sequence)
	}
	return ""
}

// Verdict says how a message is settled. The zero Verdict completes it.
type Verdict struct {
	// DeadLetter moves the message to the dead-letter queue.
	DeadLetter bool
	// Reason is a short constant name, and Description a sentence, both kept
	// with the dead-lettered message.
	Reason, Description string
}

// Handler applies messages.
type Handler interface {
	// Hold begins a hold of one session: what it returns is asked to apply that
	// hold's messages, by one goroutine.
	Hold(sessionID string) Applier
}

// Applier applies the messages of one hold.
type Applier interface {
	// Apply applies messages in order. It returns a verdict for each message
	// that it is done with, in order from the first; done means that what the
	// message asks for is stored for good, so the message can be settled. With
	// an error the others are not done, and may be offered again. Apply starts
	// no write after ctx has ended. ErrNotYet, ErrPaused and ErrRest have
	// the session given back.
	Apply(ctx context.Context, messages []Message) ([]Verdict, error)
}

// ErrNotYet in an error of Apply means that the messages wait for another one
// of their session, which may stand behind them. The session is given back after
// a pause, and who takes it then sees what has come.
var ErrNotYet = errors.New("a message that belongs before these has not come yet")

// ErrPaused in an error of Apply means that nothing more is to be applied for now.
// The session is given back as it is; Config.Paused keeps the next ones away.
var ErrPaused = errors.New("no more messages are applied for now")

// ErrRest in an error of Apply means that the failure is this session's own: what
// others ask for can be stored. The session takes no slot any more, and
// is given back after a while that grows each time.
var ErrRest = errors.New("this session alone cannot be applied")

// ErrNoSession means that no session had messages for as long as the accept waited.
var ErrNoSession = errors.New("no session has messages")

// Acceptor hands out sessions. It is used by many slots at once.
type Acceptor interface {
	// Accept waits until ctx ends for a session with messages and takes its
	// lock. It returns ErrNoSession when there was none, and a *BusyError where the
	// broker throttles.
	Accept(ctx context.Context, slot int) (Receiver, error)
	// Doubt tells that an accept of the slot has neither answered nor failed in
	// time. Its connection is replaced where that is made and nothing has answered on it
	// since a moment. It does not block.
	Doubt(slot int, since time.Time)
}

// Receiver is a held session. One goroutine calls RenewLock, and another one the other
// methods. Settle is called by several at once, and of a Carrier also while the others
// run.
type Receiver interface {
	// SessionID is the aggregate's id.
	SessionID() string
	// LockedUntil is when the lock ends by the broker's clock, as of the accept.
	LockedUntil() time.Time
	// Receive waits until ctx ends for messages, up to limit, in order.
	// Messages and an error may come together.
	Receive(ctx context.Context, limit int) ([]Message, error)
	// RenewLock extends the lock and returns its new end by the broker's clock. Its
	// error is a *BusyError where the broker throttles, and so is that of a Settle that
	// may be called again.
	RenewLock(ctx context.Context) (time.Time, error)
	// Settle settles one message.
	Settle(ctx context.Context, m Message, v Verdict) error
	// Close gives the session back, with whatever is not settled.
	Close(ctx context.Context) error
}

// Fitter is a Receiver that knows how fast messages come.
type Fitter interface {
	Receiver
	// Fits is how many messages, of so many bytes each and at most limit, come in a
	// time that leaves the lock room; it may be 0. It is called before each Receive, by
	// the goroutine that receives.
	Fits(limit int, each int64) int
}

// Carrier is a Receiver that keeps what comes after a receive has ended, in
// order, for the next one. What one receive has asked for counts for the next, which
// asks only for the rest. Other Receivers may hand late arrivals back instead. The
// goroutine that receives calls its methods.
type Carrier interface {
	Receiver
	// Turn waits until ctx ends for what is received next to come in good time, beside
	// what others have asked for on the connection. It returns how many messages, of so
	// many bytes each and at most limit, the next Receive is to be of. What was asked
	// for before needs no turn.
	Turn(ctx context.Context, limit int, each int64) (int, error)
	// Carried is how many messages have come. A receive of as many asks for no
	// more.
	Carried() int
	// Busy tells whether what comes on the connection is for others that asked before the
	// last Receive: then what that one has asked for may be on its way behind it.
	Busy() bool
	// Coming tells whether a part of what the last Receive has asked for has come since
	// that began, or large messages of others that may stand before it.
	Coming() bool
	// Ask asks for messages that may come before the next Receive: n in all, with
	// those that were asked for and not received before.
	Ask(n int) error
	// Withdraw waits until ctx ends for nothing more to come of what was asked for. What
	// has come and was not received is let go, and free again when the session is given
	// back. After an error more may come. Nothing is received after it.
	Withdraw(ctx context.Context) error
}
