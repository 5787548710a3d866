package readmodeltest

import (
	"context"
	"slices"
	"strings"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/projection"
)

// Park implements delivery.Parking.
func (f *Fake) Park(_ context.Context, messages []delivery.Parked) error {
	for i := range messages {
		if err := f.fail("park"); err != nil {
			return err
		}
		if !f.park(messages[i]) {
			return delivery.ErrLifted
		}
	}
	return nil
}

func (f *Fake) park(p delivery.Parked) (halted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, halted := f.halts[p.Event.AggregateID]; !halted {
		return false
	}
	if !slices.ContainsFunc(f.parked, func(q delivery.Parked) bool { return sameEvent(&q.Event, &p.Event) }) {
		f.parked = append(f.parked, p)
	}
	return true
}

func sameEvent(a, b *contract.Event) bool {
	return a.AggregateID == b.AggregateID && a.Sequence == b.Sequence && a.ID == b.ID
}

// Parked returns an aggregate's parked sequences, in their order.
func (f *Fake) Parked(_ context.Context, aggregate string) ([]contract.Sequence, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var sequences []contract.Sequence
	for _, p := range f.parked {
		if p.Event.AggregateID == aggregate {
			sequences = append(sequences, p.Event.Sequence)
		}
	}
	slices.Sort(sequences)
	return sequences, nil
}

// Next implements delivery.Shelf.
func (f *Fake) Next(_ context.Context, aggregate string, limit int) ([]delivery.Shelved, error) {
	if err := f.fail("next"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	parked := slices.Clone(f.parked)
	slices.SortStableFunc(parked, func(a, b delivery.Parked) int {
		return strings.Compare(string(a.Event.Sequence), string(b.Event.Sequence))
	})
	var messages []delivery.Shelved
	for i := range parked {
		if parked[i].Event.AggregateID == aggregate && len(messages) < limit {
			messages = append(messages, delivery.Shelved{Message: parked[i].Message.Message, FollowedBy: f.FollowedBy, Returned: parked[i].Returned})
		}
	}
	return messages, nil
}

// Position implements delivery.Shelf.
func (f *Fake) Position(_ context.Context, w *projection.Write) (contract.Sequence, string, error) {
	if err := f.fail("position"); err != nil {
		return "", "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.Keyed {
		if e := f.positions[[2]string{w.Projection, w.Event.AggregateID}]; e != nil {
			return e.Sequence, e.ID, nil
		}
		return "", "", nil
	}
	if d := f.documents[w.Collection][w.ID]; d != nil {
		return d.sequence, d.eventID, nil
	}
	return "", "", nil
}

// Unpark implements delivery.Shelf.
func (f *Fake) Unpark(_ context.Context, e *contract.Event) (bool, error) {
	if err := f.fail("unpark"); err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(f.parked)
	f.parked = slices.DeleteFunc(f.parked, func(p delivery.Parked) bool { return sameEvent(&p.Event, e) })
	return len(f.parked) < before, nil
}
