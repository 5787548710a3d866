package delivery

import (
	"context"
	"errors"
	"fmt"
	"strconv"
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
	// Repeated: it, or a later one of its document, was stored before.
	Repeated
)

// RejectedError is a write that the store refuses for what it says, now and later.
type RejectedError struct {
	// Index is the write's place among those handed over.
	Index  int
	Reason string
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

// Observer is told what is done, from many goroutines.
type Observer interface {
	// Stored reports one call of Store.Write and how long it took.
	Stored(writes int, took time.Duration)
	// Readable reports an event whose writes have just become readable.
	Readable(e *contract.Event)
}

// Counts is what was done since the process began. Fields may be read at any time.
type Counts struct {
	// Applied, Repeated, PassedBy, Parked and Refused count messages.
	Applied, Repeated, PassedBy, Parked, Refused atomic.Int64
	// Discarded counts messages that came again after their events were discarded.
	Discarded atomic.Int64
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
	Decider  Decider
	Store    Store
	Parking  Parking
	Halts    *Halts
	Observer Observer
	Log      zerolog.Logger

	// Care finds what processes die of; nil for none.
	Care Care
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
	config   Config
	decider  Decider
	store    Store
	parking  Parking
	halts    *Halts
	brake    *Brake
	observer Observer
	tracer   Tracer
	log      zerolog.Logger
	careful  careful
	gaps     gaps
	filling  Filling
	lasting  lasting
	counts   Counts
	holds    atomic.Int64
}

var _ session.Handler = (*Handler)(nil)

// New returns a handler.
func New(config Config, deps Deps) *Handler {
	return &Handler{
		config:   config,
		decider:  deps.Decider,
		store:    deps.Store,
		parking:  deps.Parking,
		halts:    deps.Halts,
		brake:    deps.Brake,
		observer: deps.Observer,
		tracer:   deps.Tracer,
		log:      deps.Log,
		careful:  careful{deps.Care, config.CrashLimit, make(chan struct{}, 1)},
		filling:  deps.Filling,
		gaps:     gaps{deps.Versions, deps.Parked, config.GapWait},
		lasting:  lasting{after: config.HaltAfter},
	}
}

// Counts is what was done.
func (h *Handler) Counts() *Counts { return &h.counts }

// Hold implements session.Handler.
func (h *Handler) Hold(sessionID string) session.Applier {
	return &hold{Handler: h, aggregate: sessionID, by: h.config.Process + "/" + strconv.FormatInt(h.holds.Add(1), 10)}
}

// hold applies the messages of one hold, one call at a time.
type hold struct {
	*Handler
	aggregate string
	by        string
	// chain is how far the versions of what this hold has dealt with follow each other.
	chain chain
	// links is how far the aggregate's versions follow each other; nil until it
	// was looked up.
	links *links
}

// Apply implements session.Applier.
func (h *hold) Apply(ctx context.Context, messages []session.Message) ([]session.Verdict, error) {
	if !h.gaps.on() {
		return h.applyAll(ctx, messages)
	}
	ordered, places := byVersion(messages)
	verdicts, err := h.applyAll(ctx, ordered)
	return inPlace(verdicts, places), err
}

// applyAll applies messages in the order given.
func (h *hold) applyAll(ctx context.Context, messages []session.Message) ([]session.Verdict, error) {
	var verdicts []session.Verdict
	for len(verdicts) < len(messages) {
		others, rest := h.meant(messages[len(verdicts):])
		if others > 0 {
			verdicts = append(verdicts, h.passResent(others)...)
			continue
		}
		if h.lasting.suspected(h.aggregate) {
			rest = rest[:1]
		}
		more, err := h.applyCarefully(ctx, rest)
		verdicts = append(verdicts, more...)
		// An operator may lift the halt under which messages are being parked:
		// then what is left is applied.
		if err != nil && (!errors.Is(err, ErrLifted) || ctx.Err() != nil) {
			return verdicts, err
		}
	}
	return verdicts, nil
}

// apply applies messages; with deadly set the first one is not tried, for that reason.
func (h *hold) apply(ctx context.Context, messages []session.Message, deadly string) ([]session.Verdict, error) {
	began := time.Now()
	halted, err := h.halts.Halted(ctx, h.aggregate)
	if err != nil {
		return nil, fmt.Errorf("look up whether aggregate %q is halted: %w", h.aggregate, err)
	}
	b := h.read(messages)
	b.trace(h.tracer, began)
	verdicts, err := h.applyBatch(ctx, b, halted, deadly)
	b.untrace(err)
	return verdicts, err
}

// applyBatch applies what was read. Without an error there is a verdict for all, or
// for those up to a discarded one.
func (h *hold) applyBatch(ctx context.Context, b *batch, halted bool, deadly string) ([]session.Verdict, error) {
	if halted && b.items[0].fills && b.items[0].event != nil {
		return h.leave(b, 0, "the aggregate is halted")
	}
	if halted {
		return h.parkAll(ctx, b)
	}
	if deadly != "" && b.items[0].event != nil {
		return h.halt(ctx, b, 0, deadly, false)
	}
	linked, missing, err := h.follows(ctx, b)
	if err != nil {
		return nil, err
	}
	failed, reason, err := h.decide(ctx, b, linked)
	if err != nil {
		return nil, err
	}
	for {
		rejected, err := h.write(ctx, b, failed)
		if err != nil {
			return h.failed(ctx, b, failed, err)
		}
		if rejected == nil {
			break
		}
		// What stands before the refused write may not all be stored yet.
		failed, reason = b.owner(rejected.Index), rejected.Reason
	}
	if err := h.reach(ctx, b, failed); err != nil {
		return nil, err
	}
	switch {
	case failed == len(b.items):
		return h.done(b, failed), nil
	case failed < linked:
		return h.halt(ctx, b, failed, reason, false)
	case h.gaps.waits(b.items[linked].message):
		return h.done(b, failed), fmt.Errorf("apply aggregate %q: %s: %w", h.aggregate, missing, session.ErrNotYet)
	}
	return h.halt(ctx, b, failed, missing, true)
}

// failed deals with a failure that no write is known to be to blame for, while the
// first n items were stored.
func (h *hold) failed(ctx context.Context, b *batch, n int, err error) ([]session.Verdict, error) {
	stored := b.stored(n)
	if unnoted := h.reach(ctx, b, stored); unnoted != nil {
		return nil, errors.Join(err, unnoted)
	}
	if ctx.Err() != nil {
		return h.done(b, stored), err
	}
	reason, err := h.lasting.failed(h.aggregate, err)
	if err != nil {
		return h.done(b, stored), err
	}
	return h.halt(ctx, b, stored, reason, false)
}

// decide fills in the writes of the batch's first n items, up to the first that
// cannot be projected. It returns that one's place, or n. With an error, which is that of
// ctx or says what could not be looked up, nothing is decided.
func (h *hold) decide(ctx context.Context, b *batch, n int) (failed int, reason string, err error) {
	choice := begin(h.filling)
	for i := range n {
		item := &b.items[i]
		item.first = len(b.writes)
		if item.event == nil {
			continue
		}
		if item.change == nil {
			return i, item.problem, nil
		}
		if ctx.Err() != nil {
			return 0, "", context.Cause(ctx)
		}
		item.change.Within(ctx)
		writes, err := h.decider.Decide(item.change)
		switch {
		case errors.Is(err, projection.ErrInterrupted):
			return 0, "", context.Cause(ctx)
		case err != nil:
			return i, err.Error(), nil
		}
		if writes, err = choice.Of(ctx, item.event, writes); err != nil {
			return 0, "", err
		}
		for i := range writes {
			writes[i].By = h.by
		}
		b.writes = append(b.writes, writes...)
		item.count = len(writes)
	}
	return n, "", nil
}

// write stores the writes of the first n items.
func (h *hold) write(ctx context.Context, b *batch, n int) (*RejectedError, error) {
	writes := b.writes[:b.end(n)]
	if len(writes) == 0 {
		return nil, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	began := time.Now()
	outcomes, err := h.store.Write(ctx, writes)
	h.observer.Stored(len(writes), time.Since(began))
	b.note(outcomes)
	if rejected, ok := asRejected(err); ok {
		return rejected, nil
	}
	if err == nil {
		h.lasting.ok(h.aggregate)
	}
	return nil, err
}
