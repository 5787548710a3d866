package readmodeltest

import (
	"context"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// Write implements delivery.Store. As with MongoDB, what goes to several
// collections, or to the ledger, is stored as a whole or not at all.
func (f *Fake) Write(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	undo := f.before(writes)
	outcomes, err := f.writeAll(ctx, writes)
	if err != nil && undo != nil {
		undo()
		clear(outcomes)
	}
	return outcomes, err
}

// before returns what takes the writes back; nil where they go one by one.
func (f *Fake) before(writes []projection.Write) (undo func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	type key struct {
		collection string
		id         any
	}
	documents, positions, collections := map[key]*document{}, map[[2]string]*contract.Event{}, map[string]bool{}
	for i := range writes {
		w := &writes[i]
		documents[key{w.Collection, w.ID}] = f.documents[w.Collection][w.ID]
		collections[w.Collection] = true
		if w.Keyed {
			account := [2]string{w.Projection, w.Event.AggregateID}
			positions[account] = f.positions[account]
		}
	}
	if len(collections) < 2 && len(positions) == 0 {
		return nil
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for k, d := range documents {
			if d != nil {
				f.documents[k.collection][k.id] = d
			} else {
				delete(f.documents[k.collection], k.id)
			}
		}
		for account, e := range positions {
			if e != nil {
				f.positions[account] = e
			} else {
				delete(f.positions, account)
				delete(f.firsts, account)
			}
		}
	}
}

func (f *Fake) writeAll(ctx context.Context, writes []projection.Write) ([]delivery.Outcome, error) {
	outcomes := make([]delivery.Outcome, len(writes))
	var collections []string
	var keyed []int
	for i := range writes {
		if writes[i].Keyed {
			keyed = append(keyed, i)
			continue
		}
		if !writes[i].Passed && !slices.Contains(collections, writes[i].Collection) {
			collections = append(collections, writes[i].Collection)
		}
	}
	for _, collection := range collections {
		for i := range writes {
			if writes[i].Collection != collection || writes[i].Keyed || writes[i].Passed {
				continue
			}
			if err := ctx.Err(); err != nil {
				return outcomes, err
			}
			if err := f.fail("write"); err != nil {
				return outcomes, err
			}
			outcome, problem := f.write(&writes[i])
			if problem != "" {
				return outcomes, &delivery.RejectedError{Index: i, Reason: problem}
			}
			if f.StoredBut != nil {
				if err := f.StoredBut(); err != nil {
					return outcomes, err
				}
			}
			outcomes[i] = outcome
		}
	}
	err := f.writeKeyed(ctx, writes, outcomes, keyed)
	if err == nil {
		f.mend(writes, outcomes)
		f.record(writes, outcomes)
	}
	return outcomes, err
}

// completed is a write that depends on its document.
func completed(w *projection.Write, d *document) (done *projection.Write, problem string) {
	var state bson.Raw
	if d.sequence != "" && !d.deleted {
		var err error
		if state, err = bson.Marshal(d.fields); err != nil {
			return nil, err.Error()
		}
	}
	made, err := w.Complete(state)
	if err != nil {
		return nil, err.Error()
	}
	made.By, made.Halted = w.By, w.Halted
	return &made, ""
}

// repeat is the outcome of a write that is not above its position: a live one from before
// the first event there was never applied.
func repeat(w *projection.Write, first contract.Sequence) (delivery.Outcome, string) {
	if w.Event.Sequence >= first || !w.Event.Version.Known || w.Event.Resend.ID != "" || w.Whole {
		return delivery.Repeated, ""
	}
	made := w
	if w.Complete != nil && !w.Keyed {
		made, _ = completed(w, &document{})
	}
	if made != nil && (made.Delete || !made.Changes()) {
		return delivery.Repeated, ""
	}
	return delivery.Unknown, "the read model did not begin with the aggregate"
}

func (f *Fake) write(w *projection.Write) (outcome delivery.Outcome, problem string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.documents[w.Collection] == nil {
		f.documents[w.Collection] = map[any]*document{}
	}
	d := f.documents[w.Collection][w.ID]
	if w.Kept && (d == nil || d.deleted || d.foreign || d.sequence >= w.Event.Sequence) {
		return delivery.Applied, ""
	}
	switch {
	case d == nil:
		d = &document{fields: map[string]any{}}
	case d.foreign:
		return 0, "the read document is not of the projector"
	case d.sequence == w.Event.Sequence && d.eventID != w.Event.ID:
		return 0, "two events of the aggregate have one sequence"
	case d.sequence >= w.Event.Sequence:
		return repeat(w, d.first)
	}
	if w.Complete != nil {
		if w, problem = completed(w, d); problem != "" || w.Kept && (d.sequence == "" || d.deleted) {
			return delivery.Applied, problem
		}
	}
	next := &document{fields: maps.Clone(d.fields), sequence: w.Event.Sequence, eventID: w.Event.ID, deleted: w.Delete, first: d.first}
	if d.sequence == "" {
		next.first = w.Event.Sequence
	}
	if w.Delete {
		next.first = ""
		next.fields = map[string]any{}
	}
	if w.Halted != nil {
		next.mark = w.Halted.Reason
	}
	if problem := apply(next.fields, w.Update); problem != "" {
		return 0, problem
	}
	f.documents[w.Collection][w.ID] = next
	return delivery.Applied, ""
}
