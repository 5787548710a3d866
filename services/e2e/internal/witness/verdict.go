package witness

import (
	"context"

	"changerelay/services/e2e/internal/orders"
	"changerelay/services/e2e/internal/readmodel"
	"changerelay/services/e2e/internal/source"
	"changerelay/services/e2e/internal/validate"
)

// Names of the faults that a verdict looks for.
const (
	LostBeforeTopic     = "lost between source and topic"
	LostBeforeReadModel = "lost between source and read model"
	AppliedTwice        = "applied more than once"
	OutOfOrder          = "out of order on the topic"
	NeverWritten        = "on the topic, but never written"
	SharedIDs           = "message ids that name two events"
	OverlappingTerms    = "sent by an old term after a new one began"
	WrongDocuments      = "read documents unlike the recomputation"
	DocumentsWentBack   = "read documents that went back"
	CheckpointsWentBack = "checkpoints that went back"
	LeasesOverlapping   = "leases taken from a holder before their time"
)

// Fault is what a validator found of one kind of fault.
type Fault struct {
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
	// Faults has one entry for every kind of fault, found or not.
	Faults []Fault
}

// Fault returns the findings of one kind.
func (v Verdict) Fault(name string) validate.Findings {
	for _, f := range v.Faults {
		if f.Name == name {
			return f.Findings
		}
	}
	return validate.Findings{}
}

// Judge reads source and read model, which must be at rest, and judges all that
// was seen.
func (w *Witness) Judge(ctx context.Context) (Verdict, error) {
	events, want, err := w.recompute(ctx)
	if err != nil {
		return Verdict{}, err
	}
	model, err := readmodel.Read(ctx, w.Client, w.names.ReadModelDatabase, w.projection.Collection)
	if err != nil {
		return Verdict{}, err
	}
	for _, doc := range model.Documents {
		orders.SortSets(doc)
	}
	v := Verdict{Events: events, Sends: w.Observer.Sends()}
	accepted := validate.EventsOf(v.Sends)
	counts := w.counts(events, model)
	missing, extra := validate.Counted(events, counts)
	v.Applied = events.Len() - missing.Count
	v.Faults = []Fault{
		{LostBeforeTopic, w.lost(events, v.Sends)},
		{LostBeforeReadModel, missing},
		{AppliedTwice, extra},
		{OutOfOrder, validate.Reordered(accepted)},
		{NeverWritten, validate.Unknown(events, accepted)},
		{SharedIDs, validate.IDsShared(v.Sends)},
		{OverlappingTerms, validate.OverlappingTerms(v.Sends)},
		{WrongDocuments, validate.Differences(want, model.Documents)},
		{DocumentsWentBack, validate.Regressions(w.Applies.History())},
		{CheckpointsWentBack, validate.CheckpointRegressions(w.Checkpoints.History())},
		{LeasesOverlapping, validate.LeaseOverlaps(w.Leases.History())},
	}
	return v, nil
}

// lost finds events that the topic did not accept. Where the observation itself
// was broken, that is said.
func (w *Witness) lost(events validate.Source, sends []validate.Send) validate.Findings {
	f := validate.Lost(events, validate.EventsOf(sends))
	if faults := w.Observer.Faults(); f.Count > 0 && len(faults) > 0 {
		f.Samples = append(f.Samples, "the observation was broken, and what it missed may have been sent: "+faults[0])
	}
	return f
}

// recompute reads the source and computes the read model anew.
func (w *Witness) recompute(ctx context.Context) (validate.Source, map[string]map[string]any, error) {
	events, model, latest := validate.Source{}, orders.Model{}, orders.Latest{}
	err := source.Each(ctx, w.Client, w.names.SourceDatabase, w.names.SourceCollection, func(e orders.Event) error {
		events[e.Aggregate] = append(events[e.Aggregate], e.Version)
		if w.projection == Orders {
			model.Apply(e)
		} else {
			latest.Apply(e)
		}
		return nil
	})
	want := make(map[string]map[string]any, len(model)+len(latest))
	for id, doc := range model {
		orders.SortSets(doc)
		want[id] = doc
	}
	for id, data := range latest {
		want[id] = map[string]any{"data": data}
	}
	return events, want, err
}

// counts returns how many events of each aggregate are in the read model: a
// document may count them itself; else only its version is known, and that all
// up to it were applied.
func (w *Witness) counts(events validate.Source, m readmodel.Model) map[string]int64 {
	counts := make(map[string]int64)
	for aggregate, versions := range events {
		if w.projection.Counts {
			counts[aggregate], _ = m.Documents[aggregate]["events"].(int64)
			continue
		}
		for _, v := range versions {
			if reached, found := m.Versions[aggregate]; found && v <= reached {
				counts[aggregate]++
			}
		}
	}
	return counts
}
