package delivery

import (
	"cmp"
	"errors"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/session"
)

// Fate is what became of a message.
type Fate string

// The fates of a message.
const (
	FateApplied      Fate = "applied"
	FateRepeated     Fate = "repeated"
	FatePassedBy     Fate = "passed_by"
	FateSkipped      Fate = "skipped"
	FateParked       Fate = "parked"
	FateDeadLettered Fate = "dead_lettered"
	FateDiscarded    Fate = "discarded"
)

// Tracer follows messages, to show where time goes.
type Tracer interface {
	// Begin begins to follow an attempt at a message, which has gone on since
	// from. The event is nil where the message belongs to no aggregate.
	Begin(m *session.Message, e *contract.Event, from time.Time) Span
}

// Span follows one attempt at a message. One of its methods is called, once.
type Span interface {
	// Done says what became of the message; reason is empty where all is well.
	Done(f Fate, reason string)
	// Failed says why the message is not dealt with, and will be tried again.
	Failed(err error)
}

// trace begins to follow the items, which were taken in hand at from.
func (b *batch) trace(tracer Tracer, from time.Time) {
	for i := 0; tracer != nil && i < len(b.items); i++ {
		it := &b.items[i]
		it.span = tracer.Begin(it.message, it.event, from)
	}
}

func (it *item) traced(f Fate, reason string) {
	if it.span != nil {
		it.span.Done(f, reason)
		it.span = nil
	}
}

// errGoesAlone is why an item is not dealt with in a batch that ends before it.
var errGoesAlone = errors.New("an event that is skipped goes in a batch of its own")

// untrace ends the spans of items without a verdict.
func (b *batch) untrace(err error) {
	err = cmp.Or(err, errGoesAlone)
	for i := range b.items {
		if it := &b.items[i]; it.span != nil {
			it.span.Failed(err)
			it.span = nil
		}
	}
}
