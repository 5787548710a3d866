package witness

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/readmodel"
	"changerelay/services/e2e/internal/validate"
)

// shadow is the content of the documents that shadow.yaml declares.
type shadow struct {
	tallies   map[string]validate.Tally // by what the documents count
	documents map[string]map[string]any
	positions map[string]validate.Position
}

// readShadow reads the shadow, of which there is none where the projection has
// none.
func (w *Witness) readShadow(ctx context.Context) (shadow, error) {
	s := shadow{tallies: map[string]validate.Tally{}, documents: map[string]map[string]any{}, positions: map[string]validate.Position{}}
	if w.projection.Shadow == "" {
		return s, nil
	}
	return s, readmodel.Each(ctx, w.Client, w.names.ReadModelDatabase, w.projection.Shadow, s.add)
}

func (s shadow) add(raw bson.Raw) error {
	id, _ := raw.Lookup("_id").StringValueOK()
	data, err := hashOf(raw.Lookup("data"))
	if err != nil {
		return err
	}
	var t validate.Tally
	t.Events, _ = raw.Lookup("events").AsInt64OK()
	t.Sum, _ = raw.Lookup("sum").AsInt64OK()
	s.tallies[id] = t
	s.positions[id] = readmodel.PositionOf(raw)
	name, _ := raw.Lookup("id").StringValueOK()
	kind, _ := raw.Lookup("type").StringValueOK()
	at, _ := raw.Lookup("time").DateTimeOK()
	s.documents[id] = map[string]any{"id": name, "type": kind, "time": at, "data": data}
	return nil
}

// shadowOf are the shadow's documents as they should be.
func (r *record) shadowOf() map[string]map[string]any {
	want := make(map[string]map[string]any, len(r.last))
	if r.projection.Shadow == "" {
		return want
	}
	for aggregate, e := range r.last {
		want[aggregate] = map[string]any{"id": e.ID, "type": e.Type, "time": e.Time, "data": e.data}
	}
	return want
}

// misapplied finds aggregates whose events were applied in another order, or
// others in their place: the shadow says how many and their sum, and whoever saw
// each write of it knows the order.
func (w *Witness) misapplied(events validate.Source, s shadow) validate.Findings {
	if w.projection.Shadow == "" {
		return validate.Findings{}
	}
	seen := w.tallies.Tallies()
	applied := make(map[string]validate.Tally, len(s.tallies))
	for aggregate, t := range s.tallies {
		t.Order, t.Unseen = seen[aggregate].Order, seen[aggregate].Unseen+max(0, t.Events-seen[aggregate].Events)
		applied[aggregate] = t
	}
	return validate.Misapplied(events, applied)
}
