package readmodeltest

import (
	"context"
	"maps"

	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// writeKeyed stores the writes of documents that many aggregates change: all
// those of a message, or none.
func (f *Fake) writeKeyed(ctx context.Context, writes []projection.Write, outcomes []delivery.Outcome, places []int) error {
	for len(places) > 0 {
		n := 1
		for n < len(places) && writes[places[n]].Event == writes[places[0]].Event && writes[places[n]].Projection == writes[places[0]].Projection {
			n++
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f.fail("write"); err != nil {
			return err
		}
		outcome, place, problem := f.writeEvent(writes, places[:n])
		if problem != "" {
			return &delivery.RejectedError{Index: place, Reason: problem}
		}
		if f.StoredBut != nil {
			if err := f.StoredBut(); err != nil {
				return err
			}
		}
		for _, place := range places[:n] {
			outcomes[place] = outcome
		}
		places = places[n:]
	}
	return nil
}

func (f *Fake) writeEvent(writes []projection.Write, places []int) (outcome delivery.Outcome, place int, problem string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := &writes[places[0]]
	account := [2]string{w.Projection, w.Event.AggregateID}
	if stored := f.positions[account]; stored != nil {
		switch {
		case stored.Sequence == w.Event.Sequence && stored.ID != w.Event.ID && !w.Passed:
			return 0, places[0], "two events of the aggregate have one sequence"
		case stored.Sequence >= w.Event.Sequence:
			for _, place := range places {
				if _, problem := repeat(&writes[place], f.firsts[account]); problem != "" {
					return 0, place, problem
				}
			}
			return delivery.Repeated, 0, ""
		}
	}
	type key struct {
		collection string
		id         any
	}
	changed := map[key]*document{}
	for _, place := range places {
		w := &writes[place]
		if w.Passed {
			continue
		}
		k := key{w.Collection, w.ID}
		d := changed[k]
		if d == nil {
			d = f.documents[w.Collection][w.ID]
		}
		next := &document{fields: map[string]any{}, sequence: w.Event.Sequence, eventID: w.Event.ID, deleted: w.Delete, shared: true}
		if d != nil && d.foreign {
			return 0, place, "the read document is not of the projector"
		}
		if d != nil && !w.Delete {
			next.fields = maps.Clone(d.fields)
		}
		if problem := apply(next.fields, w.Update); problem != "" {
			return 0, place, problem
		}
		changed[k] = next
	}
	for k, d := range changed {
		if f.documents[k.collection] == nil {
			f.documents[k.collection] = map[any]*document{}
		}
		f.documents[k.collection][k.id] = d
	}
	if f.positions[account] == nil {
		f.firsts[account] = w.Event.Sequence
	}
	f.positions[account] = w.Event
	return delivery.Applied, 0, ""
}
