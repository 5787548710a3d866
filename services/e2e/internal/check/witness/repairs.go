package witness

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/expect"
	"changerelay/services/e2e/internal/check/readmodel"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/harness/orders"
)

// Views of projections that operators build anew: what shadow.yaml, orders.yaml and
// keyed.yaml declare under these names, with versions.
const (
	Mended = "mended"
	Placed = "placed"
	Buyers = "buyers"
)

// Repaired is the projection with those beside it that operators build anew.
func (p Projection) Repaired() Projection {
	p.Views = []string{Mended, Placed}
	if p.Keyed != "" {
		p.Views = append(p.Views, Buyers)
	}
	return p
}

// repairs are what operators have asked the relay to send again. Its methods are safe
// for concurrent use.
type repairs struct {
	mu     sync.Mutex // guards what follows
	groups map[string]bool
	asked  []validate.Asked
	// may are the events that resends may send, by the resends' ids.
	may map[string]func(validate.Event) bool
}

// MayResend notes that an operator asks for something to be sent again for a group. It is
// to be called before that.
func (w *Witness) MayResend(group string) {
	w.repairs.mu.Lock()
	defer w.repairs.mu.Unlock()
	w.repairs.groups[group] = true
}

// Selects notes which events a resend is of, wherever it ends: of those that were written
// before it was asked for it may send no others. Later ones go along where they come to an
// aggregate just as that is sent.
func (w *Witness) Selects(id string, asked time.Time, selected func(validate.Event) bool) {
	w.repairs.mu.Lock()
	defer w.repairs.mu.Unlock()
	w.repairs.may[id] = func(e validate.Event) bool {
		at, known := w.Ledger.WrittenAt(e.Aggregate, e.Version)
		return selected(e) || !known || !at.Before(asked)
	}
}

// Resent notes that a resend is done which had to send what was selected of the events
// that were written before it was asked for.
func (w *Witness) Resent(id, group string, asked time.Time, selected func(validate.Event) bool) {
	w.repairs.mu.Lock()
	defer w.repairs.mu.Unlock()
	w.repairs.asked = append(w.repairs.asked, validate.Asked{
		Resend:   expect.Resend{ID: id, Group: group},
		Selected: func(yield func(validate.Event) bool) { w.Ledger.before(asked, selected, yield) },
	})
}

// judgeResent judges the messages that were sent again.
func (w *Witness) judgeResent(truth *record, live []validate.Send) []Violation {
	resent := w.Observer.Resent()
	all := slices.Concat(live, resent)
	validate.InOrderOfAcceptance(all)
	w.repairs.mu.Lock()
	defer w.repairs.mu.Unlock()
	return []Violation{
		{ResentUnlike, validate.Unlike(truth.owed, resent).And(validate.IDsShared(all))},
		{ResentUnknown, validate.Unknown(truth.owing, validate.EventsOf(resent))},
		{ResentEarly, validate.Overtaking(all)},
		{ResentOutOfOrder, validate.ResentInOrder(resent)},
		{ResentForNobody, validate.ResentForNobody(resent, w.repairs.groups)},
		{NotResent, validate.NotResent(w.repairs.asked, resent)},
		{Unselected, validate.Unselected(w.repairs.may, resent)},
	}
}

// views are the documents of the views that operators have built anew, as they should be
// and as readers see them, with the events that they name.
func (w *Witness) views(ctx context.Context, truth *record, name string) (want, got map[string]map[string]any, err error) {
	want, got = map[string]map[string]any{}, map[string]map[string]any{}
	switch name {
	case Mended:
		s := newShadow()
		err = readmodel.Each(ctx, w.Client, w.names.ReadModelDatabase, name, func(raw bson.Raw) error {
			if err := s.add(raw); err != nil {
				return err
			}
			id, _ := raw.Lookup("_id").StringValueOK()
			for _, field := range beyondShadow(raw) {
				s.documents[id][field] = "should not be there"
			}
			return nil
		})
		for id, doc := range s.documents {
			doc["events"], doc["sum"], doc["at"] = s.tallies[id].Events, s.tallies[id].Sum, s.positions[id]
			got[id] = doc
		}
		for id, doc := range truth.shadowOf() {
			tally := validate.TallyOf(truth.marks[id])
			doc["events"], doc["sum"], doc["at"] = tally.Events, tally.Sum, truth.last[id].Position
			want[id] = doc
		}
	case Placed:
		got, err = w.viewed(ctx, name, true)
		for id, doc := range truth.documents() {
			want[id] = maps.Clone(doc)
			want[id]["at"] = truth.last[id].Position
		}
	case Buyers:
		got, err = w.viewed(ctx, name, false)
		for id, doc := range truth.keyed.customers {
			orders.SortSets(doc)
			want[id] = doc
		}
	}
	return want, got, err
}

// beyondShadow are the fields of a document that shadow.yaml gives it none of.
func beyondShadow(raw bson.Raw) (more []string) {
	elements, _ := raw.Elements()
	for _, e := range elements {
		if !slices.Contains([]string{"_id", "_relay", "events", "sum", "tail", "id", "type", "time", "data"}, e.Key()) {
			more = append(more, e.Key())
		}
	}
	return more
}

// viewed are the documents of a view in plain form, with the events that they name where
// each is one aggregate's.
func (w *Witness) viewed(ctx context.Context, name string, placed bool) (map[string]map[string]any, error) {
	model, err := readmodel.Read(ctx, w.Client, w.names.ReadModelDatabase, name)
	for id, doc := range model.Documents {
		orders.SortSets(doc)
		if placed {
			doc["at"] = model.Positions[id]
		}
	}
	return model.Documents, err
}

// judgeViews judges what operators have built anew.
func (w *Witness) judgeViews(ctx context.Context, truth *record) ([]Violation, error) {
	if len(w.projection.Views) == 0 {
		return nil, nil
	}
	wrong := Violation{Name: WrongViews}
	for _, name := range w.projection.Views {
		want, got, err := w.views(ctx, truth, name)
		if err != nil {
			return nil, fmt.Errorf("judge the view %s: %w", name, err)
		}
		wrong.Findings = wrong.And(validate.Differences(want, got))
		if name != Buyers {
			continue // its documents say themselves which event they have come to
		}
		live, err := w.LiveVersion(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("judge the view %s: %w", name, err)
		}
		noted, err := w.notedOf(ctx, live) // by the name of the version, as its documents
		if err != nil {
			return nil, err
		}
		wrong.Findings = wrong.And(validate.Differences(truth.notes(), noted))
	}
	return []Violation{wrong}, nil
}

// Differing are the ids of documents of such a view that are not what the source makes
// of them, in their order. The relay must be at rest, and nothing archived.
func (w *Witness) Differing(ctx context.Context, view string) ([]string, error) {
	truth := newRecord(w.projection)
	if err := w.recomputeInto(ctx, truth, nil); err != nil {
		return nil, err
	}
	want, got, err := w.views(ctx, truth, view)
	if err != nil {
		return nil, err
	}
	differ := map[string]bool{}
	for id, doc := range want {
		if !reflect.DeepEqual(doc, got[id]) {
			differ[id] = true
		}
	}
	for id := range got {
		if want[id] == nil {
			differ[id] = true
		}
	}
	return slices.Sorted(maps.Keys(differ)), nil
}

// LiveVersion is the collection of which a view shows the documents; "" where there is no
// such view.
func (w *Witness) LiveVersion(ctx context.Context, view string) (string, error) {
	cursor, err := w.ReadModel().ListCollections(ctx, bson.D{{Key: "name", Value: view}, {Key: "type", Value: "view"}})
	var all []struct {
		Options struct {
			ViewOn string `bson:"viewOn"`
		} `bson:"options"`
	}
	if err == nil {
		err = cursor.All(ctx, &all)
	}
	if err != nil || len(all) == 0 {
		return "", err
	}
	return all[0].Options.ViewOn, nil
}
