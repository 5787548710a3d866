package witness

import (
	"context"
	"slices"

	"changerelay/services/e2e/internal/check/expect"
	"changerelay/services/e2e/internal/check/readmodel"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/orders"
	"changerelay/services/e2e/internal/harness/source"
)

// Names of the violations that a verdict looks for.
const (
	LostAtSource        = "acknowledged by the source, but not in it"
	LostBeforeTopic     = "lost between source and topic"
	LostBeforeReadModel = "lost between source and read model"
	AppliedTwice        = "applied more than once"
	OutOfOrder          = "out of order on the topic"
	NeverWritten        = "on the topic, but never written"
	SharedIDs           = "message ids that name two events"
	SeveralIDs          = "events that came under two message ids"
	Foreign             = "on the topic, but of no source of the relay"
	Copied              = "sent as a copy's, though nothing was copied"
	Mortal              = "messages that the broker may drop before they are received"
	UnlikeSource        = "messages unlike what their document says"
	PositionsBack       = "messages that stand before an earlier event"
	TermsUnclaimed      = "messages of a term that nobody claimed"
	OverlappingTerms    = "sent by an old term after a new one began"
	WrongDocuments      = "read documents unlike the recomputation"
	WrongShadow         = "shadow documents unlike the last event of their aggregate"
	Misapplied          = "aggregates whose events were applied in another order"
	OrderUnseen         = "aggregates whose events were applied in an order that nobody saw"
	Misplaced           = "read documents that name another event than they have come to"
	MarkedHalted        = "read documents marked as halted"
	TermsShared         = "terms that two publishers claimed"
	DocumentsWentBack   = "read documents that went back"
	WorkedOnAtOnce      = "read documents written by a hold after another took over"
	CheckpointsWentBack = "checkpoints that went back"
	LeasesOverlapping   = "leases taken from a holder before their time"
	WrongBeside         = "documents of another group unlike the last event of their aggregate"
	WrongKeyed          = "documents of another key unlike the recomputation"
	MisplacedKeyed      = "orders that are noted at another event than documents of another key should have come to"
	WrongSteps          = "documents of a projection in Go unlike the recomputation"
	ResentUnlike        = "messages sent again unlike the first"
	ResentUnknown       = "sent again, but never written"
	ResentEarly         = "sent again before they were sent at all"
	ResentOutOfOrder    = "sent again out of order"
	ResentForNobody     = "sent again for a group that nobody has named"
	NotResent           = "selected to be sent again, but not sent"
	Unselected          = "sent again, but not selected"
	WrongViews          = "documents that were built anew unlike the recomputation"
	MisappliedBeside    = "aggregates of which another group has applied other events, or not once each"
)

// Violation is what a validator found of one kind.
type Violation struct {
	Name string
	validate.Findings
}

// Verdict is what was seen, and what is wrong with it.
type Verdict struct {
	// Events are the source's.
	Events validate.Source
	// Sends are what the topic accepted, in its order.
	Sends []validate.Send
	// Applied is how many of the source's events are in the read model.
	Applied int
	// Forgiven is how many events need not have come.
	Forgiven int
	// Violations has one entry for every kind, found or not.
	Violations []Violation
	// Unseen are the kinds of which nothing can be found, as their history has no entry.
	Unseen map[string]bool
}

// Violation returns the findings of one kind.
func (v Verdict) Violation(name string) validate.Findings {
	for _, f := range v.Violations {
		if f.Name == name {
			return f.Findings
		}
	}
	return validate.Findings{}
}

// Judge reads source and read model, which must be at rest, and judges all that
// was seen. It can be asked for once where Archive was called.
func (w *Witness) Judge(ctx context.Context) (Verdict, error) {
	truth, ofOthers, err := w.recompute(ctx)
	if err != nil {
		return Verdict{}, err
	}
	model, err := readmodel.Read(ctx, w.Client, w.names.ReadModelDatabase, w.projection.Collection)
	if err != nil {
		return Verdict{}, err
	}
	if w.projection.ownRules() {
		clear(model.Documents) // the shadow's, which are judged as such
	}
	for _, doc := range model.Documents {
		orders.SortSets(doc)
	}
	shadow, err := w.readShadow(ctx)
	if err != nil {
		return Verdict{}, err
	}
	w.skipped = truth.skipped
	events := truth.events
	claims := w.Checkpoints.History()
	v := Verdict{Events: events, Forgiven: truth.forgiven, Sends: validate.InStreams(w.sends(), claims)}
	accepted := validate.EventsOf(v.Sends)
	missing, extra := validate.Counted(events, truth.counts(model, shadow.tallies))
	v.Applied = events.Len() - missing.Count
	misapplied, unordered := w.misapplied(truth.marks, shadow, w.tallies)
	v.Unseen = w.unseen(v.Sends)
	v.Violations = []Violation{
		{LostAtSource, w.lostAtSource(events, truth.forgiven)},
		{LostBeforeTopic, w.lost(truth.owing, v.Sends)},
		{LostBeforeReadModel, missing},
		{AppliedTwice, extra},
		{OutOfOrder, validate.Reordered(accepted)},
		{NeverWritten, validate.Unknown(truth.owing, accepted)},
		{SharedIDs, validate.IDsShared(v.Sends)},
		{SeveralIDs, validate.SeveralIDs(v.Sends)},
		{UnlikeSource, validate.Unlike(truth.owed, w.excused(truth.owed, v.Sends))},
		{PositionsBack, validate.PositionsBack(v.Sends)},
		{TermsUnclaimed, validate.TermsUnclaimed(slices.Concat(v.Sends, validate.InStreams(w.Observer.Resent(), claims)), claims)},
		{OverlappingTerms, validate.OverlappingTerms(v.Sends)},
		{TermsShared, validate.TermsShared(claims)},
		{WrongDocuments, w.differences(truth.documents(), model.Documents)},
		{WrongShadow, validate.Differences(truth.shadowOf(), shadow.documents)},
		{Misapplied, misapplied},
		{OrderUnseen, unordered},
		{Misplaced, validate.Misplaced(truth.places(), model.Positions).And(validate.Misplaced(truth.positions(), shadow.positions))},
		{MarkedHalted, validate.Halted(model.Positions).And(validate.Halted(shadow.positions))},
		{DocumentsWentBack, validate.Regressions(w.Applies.History())},
		{WorkedOnAtOnce, validate.Interleaved(w.Applies.History())},
		{CheckpointsWentBack, validate.CheckpointRegressions(claims)},
		{LeasesOverlapping, validate.LeaseOverlaps(w.Leases.History())},
	}
	byKey, err := w.judgeKeyed(ctx, truth)
	if err != nil {
		return Verdict{}, err
	}
	inGo, err := w.judgeSteps(ctx, truth)
	if err != nil {
		return Verdict{}, err
	}
	anew, err := w.judgeViews(ctx, truth)
	if err != nil {
		return Verdict{}, err
	}
	others, err := w.judgeBeside(ctx, ofOthers)
	v.Violations = slices.Concat(v.Violations, w.judgeAlone(v.Sends), w.judgeResent(truth, v.Sends), byKey, inGo, anew, others)
	return v, err
}

// lostAtSource counts writes that the source acknowledged and does not have.
func (w *Witness) lostAtSource(events validate.Source, forgiven int) validate.Findings {
	written, _ := w.Ledger.Counts()
	return validate.Findings{Count: max(written-events.Len()-forgiven, 0)}
}

// judgeAlone judges what can be judged where the broker is the relay's alone. One that is
// no sandbox may take messages of others, and may show a time to live of its own for each;
// and what a relay copies that was there before, nobody knows but who has written it.
func (w *Witness) judgeAlone(sends []validate.Send) []Violation {
	if w.endpoints.SandboxStatusURL == "" {
		return nil
	}
	return []Violation{{Foreign, w.Observer.Foreign()}, {Copied, validate.Copied(sends, w.copied)}, {Mortal, validate.Mortal(slices.Concat(sends, w.Observer.Resent()))}}
}

// lost finds events that the topic did not accept. Where the observation itself
// was broken, that is said.
func (w *Witness) lost(events validate.Source, sends []validate.Send) validate.Findings {
	f := validate.Lost(events, validate.EventsOf(sends))
	if breaks := w.Observer.Faults(); f.Count > 0 && len(breaks) > 0 {
		f.Samples = append(f.Samples, "the observation was broken, and what it missed may have been sent: "+breaks[0])
	}
	return f
}

// Lacking are the aggregates of which the read model has not all events, with how many
// it lacks; those that Archive took are not looked at.
func (w *Witness) Lacking(ctx context.Context) (map[string]int64, error) {
	truth := newRecord(w.projection)
	if err := w.recomputeInto(ctx, truth, nil); err != nil {
		return nil, err
	}
	model, err := readmodel.Read(ctx, w.Client, w.names.ReadModelDatabase, w.projection.Collection)
	if err != nil {
		return nil, err
	}
	shadow, err := w.readShadow(ctx)
	if err != nil {
		return nil, err
	}
	missing := make(map[string]int64)
	counts := truth.counts(model, shadow.tallies)
	for aggregate, versions := range truth.events {
		if n := int64(len(versions)) - counts[aggregate]; n > 0 {
			missing[aggregate] = n
		}
	}
	return missing, nil
}

// recompute reads what is left in the source and adds it to what Archive took. What is
// left out of the first group's read model others must have, so theirs is computed by
// itself where anything is.
func (w *Witness) recompute(ctx context.Context) (truth, ofOthers *record, err error) {
	truth = w.archived
	w.archived = newRecord(w.projection)
	if w.documents != nil {
		w.documents.goOn(w.archived)
	}
	ofOthers = truth
	if w.forgiven != nil && len(w.seenBeside()) > 0 {
		ofOthers = truth.forOthers()
		if err := w.recomputeInto(ctx, ofOthers, w.gone); err != nil {
			return nil, nil, err
		}
	}
	return truth, ofOthers, w.recomputeInto(ctx, truth, w.forgiven)
}

// recomputeInto adds what is left in the source to a record, but for what need not
// have come.
func (w *Witness) recomputeInto(ctx context.Context, r *record, forgiven func(source.Stored) pardon) error {
	if w.documents != nil {
		return w.documents.each(func(c changed) error { return r.recompute(c, forgiven) })
	}
	return w.eachEvent(ctx, func(e source.Stored) error {
		pardoned := due
		if forgiven != nil {
			pardoned = forgiven(e)
		}
		if pardoned == due {
			return r.add(w.names, e)
		}
		r.forgiven++
		if pardoned == unsent {
			return nil
		}
		e, message, err := r.owe(w.names, e)
		if err == nil && pardoned == late && r.projection.Keyed != "" {
			r.keyed.addLate(e, &message, w.overtakenInKeyed)
		}
		return err
	})
}

// eachEvent calls each for the events that the source's collections have.
func (w *Witness) eachEvent(ctx context.Context, each func(source.Stored) error) error {
	for _, collection := range w.names.Collections() {
		if err := source.Each(ctx, w.Client, w.names.SourceDatabase, collection, each); err != nil {
			return err
		}
	}
	return nil
}

// sends are what the topic has accepted so far.
func (w *Witness) sends() []validate.Send {
	if w.documents == nil {
		return w.Observer.Sends()
	}
	return w.documents.numbered(w.Observer.Sends())
}

// excused are the sends without what is allowed of each.
func (w *Witness) excused(owed map[validate.Event]expect.Print, sends []validate.Send) []validate.Send {
	if w.documents == nil {
		return sends
	}
	return w.documents.excused(owed, sends)
}

// differences finds read documents unlike the recomputation, but for what nobody can
// compute.
func (w *Witness) differences(want, got map[string]map[string]any) validate.Findings {
	if w.documents != nil && w.documents.Full == expect.LookedUp {
		orders.WithoutAmounts(want)
		orders.WithoutAmounts(got)
	}
	return validate.Differences(want, got)
}
