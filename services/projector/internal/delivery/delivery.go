package delivery

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/session"
)

// Outcome is what became of a write.
type Outcome byte

// The outcomes of a write.
const (
	// Unknown: it may be stored or not.
	Unknown Outcome = iota
	// Applied: it is stored, by this call.
	Applied
	// Repeated: it, or a later one of its document, was stored before. Of a write that skips
	// its event: the projection has applied it.
	Repeated
	// Recorded: the projection has skipped the event before, and there is a record of it.
	Recorded
)

// RejectedError is a write that the store refuses for its content, now and later.
type RejectedError struct {
	// Index is the write's place among those handed over.
	Index  int
	Reason string
	// Class is projection.Evaluate or projection.Store where the projection's policy
	// decides about the event; "" where the order of the aggregate is in doubt, which
	// nothing but a halt is for.
	Class projection.Class
}

func (e *RejectedError) Error() string { return e.Reason }

// Store keeps the read documents.
type Store interface {
	// Write stores writes, in order per document, each only over a lower
	// sequence. It returns an outcome for each write; with an error some of
	// them are Unknown. The error is a *RejectedError where one write is to
	// blame; any other passes, or is not known to last, and is ErrUnreachable where
	// it says nothing about the writes. An outcome that is not Unknown is durable.
	Write(ctx context.Context, writes []projection.Write) ([]Outcome, error)
}

// Parking keeps what cannot be projected.
type Parking interface {
	// Halt notes that an aggregate is halted, and marks its read documents in the
	// same step. A halted one stays as it is. It returns the halt that is stored.
	Halt(ctx context.Context, h Halt) (HaltID, error)
	// Park keeps messages of a halted aggregate. One that is parked already
	// stays as it is, unless only its place is kept, without body and properties:
	// then it is kept whole. The error is a *RejectedError where one message cannot
	// be kept, ErrLifted where the aggregate is not halted any more, and ErrDiscarded
	// where an operator has discarded the event; then that message is not parked.
	Park(ctx context.Context, messages []Parked) error
	// Discarded tells whether an operator has discarded an event.
	Discarded(ctx context.Context, e *contract.Event) (bool, error)
}

// ErrLifted means that an aggregate's halt was lifted in the meantime.
var ErrLifted = errors.New("the aggregate is not halted any more")

// ErrDiscarded means that an operator has discarded an event.
var ErrDiscarded = errors.New("the event was discarded")

// Halt is the halt of an aggregate.
type Halt struct {
	// Event is the one that failed, without its data.
	Event  contract.Event
	Reason string
	// Projection is the one that is to blame; "" where none is.
	Projection string
	// Uncounted keeps the halt from counting for the brake.
	Uncounted bool
	// Deleted tells that it was stored before, and was deleted with all that was
	// parked under it.
	Deleted bool
}

// Parked is a message that is kept aside.
type Parked struct {
	Message session.Message
	// Event is the message decoded, without its data.
	Event contract.Event
	// Failed marks the message that halted the aggregate; Reason says why.
	Failed bool
	Reason string
	// Returned tells that it was dead-lettered and is put back: see PutBack.
	Returned bool
}

// Decider decides what a change writes.
type Decider interface {
	Decide(c *projection.Change) ([]projection.Write, error)
	// Followers are the names of the projections that follow events of a type.
	Followers(eventType string) []string
}

// Policed decides under the policies of projections.
type Policed interface {
	// Decide is that of a Decider, and skips the event for projections that cannot
	// decide. The error is a *projection.Failure where their policies do not.
	Decide(c *projection.Change) ([]projection.Write, error)
	// Skip are the writes that stand in the place of those of a projection, or, where it
	// is "", of all that follow the event; or such an error.
	Skip(c *projection.Change, class projection.Class, reason, name string) ([]projection.Write, error)
}

// Observer is told what is done, from many goroutines.
type Observer interface {
	// Stored reports one call of Store.Write and how long it took.
	Stored(writes int, took time.Duration)
	// Readable reports an event whose writes have just become readable.
	Readable(e *contract.Event)
	// Projected reports an event that is dealt with: its writes, those of each projection
	// together, and what became of them. fills tells that it is for a version that is
	// filled alone.
	Projected(e *contract.Event, fills bool, writes []projection.Write, outcomes []Outcome)
	// Halted reports an aggregate that is halted because of a projection.
	Halted(name string)
}

// Counts is what was done since the process began. Fields may be read at any time.
type Counts struct {
	// Applied, Repeated, PassedBy, Parked and Refused count messages.
	Applied, Repeated, PassedBy, Parked, Refused atomic.Int64
	// Discarded counts messages that came again after their events were discarded.
	Discarded atomic.Int64
	// Skipped counts events that were skipped, for each projection that skipped one, and
	// DeadLettered those among them whose messages are in the dead letters.
	Skipped, DeadLettered atomic.Int64
	// Halts counts halted aggregates; VersionGaps versions that were not seen
	// between two consecutive events of an aggregate.
	Halts, VersionGaps atomic.Int64
}

// Config says how a handler deals with messages.
type Config struct {
	// Process is unique among all processes there ever were. Each write says by it,
	// and a number, under which hold it is made.
	Process string
	// Group is whose resends are meant. What is resent for another one is passed by
	// as a repeat: each of these changes was sent before, or will be, as it comes.
	Group string
	// CrashLimit is how many processes must have died while they applied a message
	// for it to be parked.
	CrashLimit int
	// HaltAfter is for how long the events of an aggregate may fail to be stored while
	// those of others are, until it is halted; with 0 it is tried for ever.
	HaltAfter time.Duration
	// GapWait is how long messages behind a missing version wait for it, from when
	// they were enqueued.
	GapWait time.Duration
}

// Deps are what a handler works with.
type Deps struct {
	Decider Decider
	// Policed decides about events that fail; nil where each halts its aggregate.
	Policed  Policed
	Store    Store
	Parking  Parking
	Halts    *Halts
	Observer Observer
	Log      zerolog.Logger

	// CrashNotes finds what processes die of; nil for none.
	CrashNotes CrashNotes
	// Records are those of events that were skipped; nil where there are none.
	Records Records
	// Versions have an event applied only after the one with the version before it.
	// Where that one is missing, later ones wait for it; then the aggregate is halted,
	// and what is Parked is applied once the missing one has come. Without Versions,
	// missing ones are counted and passed over.
	//
	// The first event that is seen of an aggregate follows nothing: what comes before
	// it is not missed.
	Versions Versions
	Parked   ParkedMessages
	// Brake bounds how many aggregates are halted; nil for no bound.
	Brake *Brake
	// Tracer follows messages; nil for none.
	Tracer Tracer
	// Filling is nil while no version is filled.
	Filling Filling
}

// Handler implements session.Handler.
type Handler struct {
	config Config
	deps   Deps
	counts Counts
	holds  atomic.Int64
	// lasting and trial are common to all holds: see guard.
	lasting lasting
	trial   chan struct{}
}

var _ session.Handler = (*Handler)(nil)

// New returns a handler.
func New(config Config, deps Deps) *Handler {
	return &Handler{config: config, deps: deps, lasting: lasting{after: config.HaltAfter}, trial: make(chan struct{}, 1)}
}

// Counts is what was done.
func (h *Handler) Counts() *Counts { return &h.counts }
