package readmodeltest

import (
	"context"
	"slices"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
)

// Missing implements delivery.Shelf.
func (f *Fake) Missing(_ context.Context, aggregate string) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	there := int64(0)
	for i := range f.parked {
		if f.parked[i].Event.AggregateID == aggregate {
			there++
		}
	}
	return max(0, f.kept[aggregate]-there), nil
}

// Shelved implements delivery.Shelf.
func (f *Fake) Shelved(_ context.Context, e *contract.Event) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.parked, func(p delivery.Parked) bool { return sameEvent(&p.Event, e) }), nil
}

// Unhalted implements delivery.Unhalted.
func (f *Fake) Unhalted(_ context.Context, aggregates ...string) ([]contract.Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var events []contract.Event
	for i := range f.parked {
		e := f.parked[i].Event
		_, halted := f.halts[e.AggregateID]
		known := slices.ContainsFunc(events, func(o contract.Event) bool { return o.AggregateID == e.AggregateID })
		if !halted && !known && (len(aggregates) == 0 || slices.Contains(aggregates, e.AggregateID)) {
			events = append(events, e)
		}
	}
	return events, nil
}

// Lose deletes an aggregate's halt, or its parked messages, as nobody should.
func (f *Fake) Lose(aggregate string, halt, parked bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if halt {
		delete(f.halts, aggregate)
		delete(f.haltIDs, aggregate)
		delete(f.kept, aggregate)
		delete(f.taken, aggregate)
	}
	if parked {
		f.parked = slices.DeleteFunc(f.parked, func(p delivery.Parked) bool { return p.Event.AggregateID == aggregate })
	}
}
