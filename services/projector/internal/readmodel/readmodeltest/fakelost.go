package readmodeltest

import (
	"context"
	"slices"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
)

// Missing implements delivery.ParkedMessages.
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

// IsParked implements delivery.ParkedMessages.
func (f *Fake) IsParked(_ context.Context, e *contract.Event) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.parked, func(p delivery.Parked) bool { return sameEvent(&p.Event, e) }), nil
}

// Unhalted implements delivery.Unhalted.
func (f *Fake) Unhalted(_ context.Context, aggregates ...string) ([]delivery.LostHalt, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lost []delivery.LostHalt
	add := func(l delivery.LostHalt) {
		aggregate := l.Event.AggregateID
		_, halted := f.halts[aggregate]
		known := slices.ContainsFunc(lost, func(o delivery.LostHalt) bool { return o.Event.AggregateID == aggregate })
		if !halted && !known && (len(aggregates) == 0 || slices.Contains(aggregates, aggregate)) {
			lost = append(lost, l)
		}
	}
	for i := range f.parked {
		add(delivery.LostHalt{Event: f.parked[i].Event})
	}
	for _, e := range f.noted {
		add(delivery.LostHalt{Event: e, Deleted: true})
	}
	return lost, nil
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
