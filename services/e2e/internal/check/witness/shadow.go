package witness

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/check/readmodel"
	"changerelay/services/e2e/internal/check/validate"
	"changerelay/services/e2e/internal/check/watch"
)

// shadow is the content of the documents that shadow.yaml declares.
type shadow struct {
	tallies   map[string]validate.Tally // by what the documents count
	documents map[string]map[string]any
	positions map[string]validate.Position
}

func newShadow() shadow {
	return shadow{tallies: map[string]validate.Tally{}, documents: map[string]map[string]any{}, positions: map[string]validate.Position{}}
}

// readShadow reads the shadow, of which there is none where the projection has
// none.
func (w *Witness) readShadow(ctx context.Context) (shadow, error) {
	s := newShadow()
	if w.projection.Shadow == "" {
		return s, nil
	}
	return s, readmodel.Each(ctx, w.Client, w.names.ReadModelDatabase, w.projection.Shadow, s.add)
}

// JudgeBeside has Judge look at the collection of another group as well, which is what
// shadow.yaml declares under the group's name, and AtRest at what the group has left
// behind. It is to be called before the group writes anything: of what it wrote before,
// nobody has seen the order. It may be said twice.
func (w *Witness) JudgeBeside(ctx context.Context, group string) error {
	if w.seenBeside()[group] != nil {
		return nil
	}
	tallies, err := watch.OpenTallies(ctx, w.ReadModel().Collection(group), func(string, int64) {})
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case w.joins <- tallies.Run:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.beside[group] = tallies
	return nil
}

// seenBeside are the other groups, with what sees each write of theirs.
func (w *Witness) seenBeside() map[string]*watch.Tallies {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.beside)
}

// AwaitBeside has all that waits for the relay to come to rest, or to stop, wait for
// another subscription as well. It may be said twice.
func (w *Witness) AwaitBeside(subscription string) {
	if !slices.Contains(w.subscriptions, subscription) {
		w.subscriptions = append(w.subscriptions, subscription)
	}
}

// MayMove has AtRest look for dead letters in another subscription as well, on which the
// first group may be for a while. What else it leaves there counts for nothing. It may be
// said twice.
func (w *Witness) MayMove(subscription string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.others, subscription) {
		w.others = append(w.others, subscription)
	}
}

// judgeBeside judges what other groups have made of the same events.
func (w *Witness) judgeBeside(ctx context.Context, truth *record) ([]Violation, error) {
	beside := w.seenBeside()
	if len(beside) == 0 {
		return nil, nil
	}
	wrong, misapplied := Violation{Name: WrongBeside}, Violation{Name: MisappliedBeside}
	for collection, seen := range beside {
		s := newShadow()
		if err := readmodel.Each(ctx, w.Client, w.names.ReadModelDatabase, collection, s.add); err != nil {
			return nil, err
		}
		counts := make(map[string]int64, len(s.tallies))
		for aggregate, t := range s.tallies {
			counts[aggregate] = t.Events
		}
		missing, extra := validate.Counted(truth.events, counts)
		others, unordered := w.misapplied(truth.marks, s, seen)
		misapplied.Findings = misapplied.And(missing).And(extra).And(others).And(unordered)
		wrong.Findings = wrong.And(validate.Differences(truth.shadowOf(), s.documents)).And(validate.Misplaced(truth.positions(), s.positions)).And(validate.Halted(s.positions))
	}
	return []Violation{wrong, misapplied}, nil
}

func (s shadow) add(raw bson.Raw) error {
	id, _ := raw.Lookup("_id").StringValueOK()
	var t validate.Tally
	t.Events, _ = raw.Lookup("events").AsInt64OK()
	t.Sum, _ = raw.Lookup("sum").AsInt64OK()
	s.tallies[id] = t
	s.positions[id] = readmodel.PositionOf(raw)
	name, _ := raw.Lookup("id").StringValueOK()
	kind, _ := raw.Lookup("type").StringValueOK()
	at, _ := raw.Lookup("time").DateTimeOK()
	s.documents[id] = map[string]any{"id": name, "type": kind, "time": at, "tail": fmt.Sprint(marksOf(raw.Lookup("tail")))}
	if _, err := raw.LookupErr("data"); err != nil {
		return nil // where there should be some, that shows
	}
	data, err := hashOf(raw.Lookup("data"))
	s.documents[id]["data"] = data
	return err
}

// tailKept is how many events a shadow document names.
const tailKept = watch.Named

// marksOf are the numbers that stand for the events that a shadow document names.
func marksOf(tail bson.RawValue) []int64 {
	array, _ := tail.ArrayOK()
	values, _ := array.Values()
	marks := make([]int64, len(values))
	for i, v := range values {
		marks[i], _ = watch.Mark(v)
	}
	return marks
}

// shadowOf are the shadow's documents as they should be.
func (r *record) shadowOf() map[string]map[string]any {
	want := make(map[string]map[string]any, len(r.last))
	if r.projection.Shadow == "" {
		return want
	}
	for aggregate, e := range r.last {
		marks := r.marks[aggregate]
		want[aggregate] = map[string]any{"id": e.ID, "type": e.Type, "time": e.Time, "tail": fmt.Sprint(marks[max(0, len(marks)-tailKept):])}
		if !r.projection.Counted {
			want[aggregate]["data"] = e.data
		}
	}
	return want
}

// misapplied finds aggregates whose events were applied in another order, or
// others in their place: the shadow says how many and their sum, and whoever saw
// each write of it knows the order. Those of which nobody did are unordered.
func (w *Witness) misapplied(events validate.Source, s shadow, tallies *watch.Tallies) (wrong, unordered validate.Findings) {
	if tallies == nil {
		return wrong, unordered
	}
	seen := tallies.Tallies()
	applied := make(map[string]validate.Tally, len(s.tallies))
	for aggregate, t := range s.tallies {
		t.Order, t.Unseen = seen[aggregate].Order, seen[aggregate].Unseen+max(0, t.Events-seen[aggregate].Events)
		t.Sum = w.summed(events[aggregate], t.Sum)
		applied[aggregate] = t
	}
	return validate.Misapplied(events, applied), validate.Unordered(events, applied)
}

// summed is the sum that a shadow document has: of events without versions it has none,
// and the events that it names speak.
func (w *Witness) summed(events []int64, sum int64) int64 {
	if w.documents == nil {
		return sum
	}
	return validate.TallyOf(events).Sum
}
