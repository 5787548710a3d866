package witness

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/source"
	"changerelay/services/e2e/internal/validate"
)

// gapsLedger is the collection in which publishers write down what they passed
// over.
const gapsLedger = "stream_gaps"

// gapSlack is how far an acknowledgement may be from the cluster time of its
// events, which the ledger keeps by the second.
const gapSlack = 2 * time.Second

// Gap is a line of the ledger: a stretch of time of which changes were passed over.
type Gap struct {
	Stream   string    `bson:"stream"`
	From     time.Time `bson:"fromTime"`
	To       time.Time `bson:"toTime"`
	Decision string    `bson:"decision"`
}

// covers says whether the line names what was acknowledged at a time. One that
// has no end names nothing: nobody has gone on from it.
func (g Gap) covers(at time.Time) bool {
	return !at.Before(g.From.Add(-gapSlack)) && !at.After(g.To.Add(gapSlack))
}

// Gaps reads the ledger.
func (w *Witness) Gaps(ctx context.Context) ([]Gap, error) {
	var gaps []Gap
	cursor, err := w.State().Collection(gapsLedger).Find(ctx, bson.D{})
	if err == nil {
		err = cursor.All(ctx, &gaps)
	}
	if err != nil {
		return nil, fmt.Errorf("read the ledger of gaps: %w", err)
	}
	return gaps, nil
}

// pardon says what need not have come of an event.
type pardon int

const (
	due    pardon = iota // all must
	late                 // it came to the topic after a later one, or an operator has left it out, and so not to the read model
	unsent               // it came nowhere
)

// Forgive has Judge take events that a line of the ledger names for events that
// need not come: to the topic, or, where they came there only after a later one
// of their aggregate, to the read model, which takes no steps back. It returns
// the lines. An event that an operator has left out of the read model, as a line of
// the projectors' ledger says, need not come there. What Archive took before is not forgiven.
func (w *Witness) Forgive(ctx context.Context) ([]Gap, error) {
	gaps, err := w.Gaps(ctx)
	if err != nil {
		return nil, err
	}
	leftOut, err := w.leftOut(ctx)
	if err != nil {
		return nil, err
	}
	sent := sendsOf(validate.EventsOf(w.Observer.Sends()))
	w.forgiven = func(e source.Stored) pardon {
		this := validate.Event{Aggregate: e.Aggregate, Version: e.Version}
		if _, came := sent[this]; came && leftOut[this] {
			return late
		}
		at, known := w.Ledger.WrittenAt(e.Aggregate, e.Version)
		if !known || !slices.ContainsFunc(gaps, func(g Gap) bool { return g.covers(at) }) {
			return due
		}
		if how, found := sent[this]; found {
			return how
		}
		return unsent
	}
	return gaps, nil
}

// sendsOf says of each event that was sent whether a later one of its aggregate
// was sent before.
func sendsOf(events iter.Seq[validate.Event]) map[validate.Event]pardon {
	sent, highest := make(map[validate.Event]pardon), make(map[string]int64)
	for e := range events {
		if _, again := sent[e]; again {
			continue
		}
		sent[e] = due
		if e.Version < highest[e.Aggregate] {
			sent[e] = late
		}
		highest[e.Aggregate] = max(highest[e.Aggregate], e.Version)
	}
	return sent
}
