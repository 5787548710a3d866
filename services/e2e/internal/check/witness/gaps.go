package witness

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/source"
)

// gapsLedger is the collection in which publishers write down what they passed
// over.
const gapsLedger = "stream_gaps"

// gapSlack is how far an acknowledgement may be from the cluster time of its
// events, which the ledger keeps by the second. Changes whose cluster time is seen
// need none.
const gapSlack = 2 * time.Second

// Gap is a line of the ledger: a stretch of time of which changes were passed over.
type Gap struct {
	Stream   string    `bson:"stream"`
	From     time.Time `bson:"fromTime"`
	To       time.Time `bson:"toTime"`
	Decision string    `bson:"decision"`
	// At is when that was decided, Unfinished that nobody knows whether it was done.
	At         time.Time `bson:"at"`
	Unfinished bool      `bson:"unfinished"`
	// Error is the line's text; where it is about some changes, and not about a stretch,
	// it names them.
	Error string `bson:"error"`
	// passed is the time before which the stream had dealt with all when the line was
	// written, whatever the line says. Zero is not known.
	passed time.Time
}

// Decisions of lines about single changes that were parked, and came nowhere: purged
// unsent, or gone from the state database.
const (
	discarded = "discarded"
	lost      = "lost"
)

// covers says whether the line names an aggregate's event that was written at a time,
// give or take the slack. One that has no end names nothing: nobody has gone on from it.
// One of a checkpoint that is gone begins where its stream did, and names nothing that the
// stream had dealt with.
func (g Gap) covers(aggregate string, at time.Time, slack time.Duration) bool {
	within := !at.Before(g.From.Add(-slack)) && !at.After(g.To.Add(slack)) && !at.Before(g.passed)
	return g.passesOver() && validate.Carries(g.Stream, aggregate) && within
}

// passesOver says whether the line is about a stretch that is not sent, as far as anybody
// knows. One that leads back passes over nothing.
func (g Gap) passesOver() bool {
	return g.operators() && !g.Unfinished && !g.To.Before(g.From)
}

// operators says whether the line is about a stretch that only a command leaves out, done or
// not. Others tell where a stream began, what it is sent with, what is copied anew, or what
// was not done. What accepts settings, at one time, a leader may note again.
func (g Gap) operators() bool {
	if g.Decision == "accept" {
		return g.To.After(g.From)
	}
	return slices.Contains([]string{"now", "set", "reset"}, g.Decision)
}

// passedBy is the time before which the line's stream had dealt with all when the line was
// written: the latest place that was saved before, as far as that time had come by then.
func passedBy(history []validate.Checkpoint, g Gap) time.Time {
	passed := int64(0)
	for _, c := range history {
		if c.Stream == g.Stream && c.At < g.At.Unix() { // not within that second: it might be after
			passed = max(passed, min(c.At, int64(validate.ClusterTime(c.Position)>>32)))
		}
	}
	return time.Unix(passed, 0)
}

// Gaps reads the ledger, with what is known of how far each stream had come.
func (w *Witness) Gaps(ctx context.Context) ([]Gap, error) {
	var gaps []Gap
	cursor, err := w.State().Collection(gapsLedger).Find(ctx, bson.D{})
	if err == nil {
		err = cursor.All(ctx, &gaps)
	}
	if err != nil {
		return nil, fmt.Errorf("read the ledger of gaps: %w", err)
	}
	history := w.Checkpoints.History()
	for i := range gaps {
		gaps[i].passed = passedBy(history, gaps[i])
	}
	return gaps, nil
}

// pardon says what need not have come of an event.
type pardon int

const (
	due     pardon = iota // all must
	late                  // it came to the topic after a later one, and so not to the read model
	without               // it came to the topic, and the read model goes on without it
	unsent                // it came nowhere
)

// Forgive has Judge take events that a line of the ledger names for events that
// need not come: to the topic, or, where they came there only after a later one
// of their aggregate, to the read model, which takes no steps back. It returns
// the lines. What Archive took before is not forgiven.
//
// done is what operators have done. An event that they have given up need not come where a
// ledger names it; one that came all the same is judged as any other. What a ledger alone
// names, or says to be passed over, is not forgiven: it is a violation.
func (w *Witness) Forgive(ctx context.Context, done Doings) ([]Gap, Violation, error) {
	unknown := Violation{Name: LineOfNobody}
	gaps, err := w.Gaps(ctx)
	if err != nil {
		return nil, unknown, err
	}
	lines, err := w.decided(ctx)
	if err != nil {
		return nil, unknown, err
	}
	own, leftOut := lines[ownGroup], done.LeftOut[ownGroup]
	applied, err := w.applied(ctx, leftOut)
	if err != nil {
		return nil, unknown, err
	}
	if w.overtakenInKeyed, err = w.keyedOrder(ctx); err != nil {
		return nil, unknown, err
	}
	changes := goneIn(gaps)
	unknown.Findings = changes.ofNobody(leftOut)
	for _, group := range slices.Sorted(maps.Keys(lines)) {
		unknown.Findings = unknown.And(lines[group].ofNobody(done.LeftOut[group]))
	}
	var passed []Gap
	for _, g := range gaps {
		switch {
		case !g.operators():
		case made(g, done.Moves):
			passed = append(passed, g)
		default:
			unknown.Add("%s to %s of %q (%s), by no command", g.From.Format(time.TimeOnly), g.To.Format(time.TimeOnly), g.Stream, g.Decision)
		}
	}
	sent := sendsOf(validate.EventsOf(w.sends()))
	w.gone = func(e source.Stored) pardon {
		this := validate.Event{Aggregate: e.Aggregate, Version: e.Version}
		how, came := sent[this]
		if !came {
			how = unsent
		}
		if left, known := leftOut[this]; !came && known && changes.name(left) {
			return unsent
		}
		at, slack, known := w.writtenAt(this)
		if !known || !slices.ContainsFunc(passed, func(g Gap) bool { return g.covers(e.Aggregate, at, slack) }) {
			return due
		}
		return how
	}
	w.forgiven = func(e source.Stored) pardon {
		this := validate.Event{Aggregate: e.Aggregate, Version: e.Version}
		_, came := sent[this]
		if left, known := leftOut[this]; came && known && own.names(this, left) && !applied[this] {
			return without
		}
		return w.gone(e)
	}
	return gaps, unknown, nil
}

// writtenAt is when an event was written, and how far its cluster time may be from that;
// false where nobody knows. The changes of a source in documents mode tell it
// themselves: many of them are acknowledged together, the first of them long after it
// was written.
func (w *Witness) writtenAt(e validate.Event) (at time.Time, slack time.Duration, known bool) {
	if w.documents != nil {
		at, known = w.documents.writtenAt(e)
		return at, 0, known
	}
	at, known = w.Ledger.WrittenAt(e.Aggregate, e.Version)
	return at, gapSlack, known
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
